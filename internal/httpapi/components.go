package httpapi

import (
	"encoding/base64"
	"unicode/utf8"

	"github.com/sallyport-dev/sallyport"
)

type componentsData struct {
	RevisionID     sallyport.RevisionID  `json:"revision_id"`
	RevisionDigest sallyport.Digest      `json:"revision_digest"`
	Components     []sallyport.Component `json:"components"`
}

func listComponents(c *call, p sallyport.Principal) (answer, error) {
	id := sallyport.RevisionID(c.query.text("revision_id"))
	revision, err := c.api.cfg.Skills.Revision(c.ctx(), p, c.skillRef(c.query.text("team_id")), id)
	return ok(componentsData{revision.ID, revision.Digest, list(revision.Components)}), err
}

// componentData is a component with its bytes: as text when they are UTF-8, else as base64.
type componentData struct {
	sallyport.Component

	Content       *string `json:"content,omitempty"`
	ContentBase64 *string `json:"content_base64,omitempty"`
}

func showComponent(c *call, p sallyport.Principal) (answer, error) {
	asBytes := c.query.boolean("raw") || wantsBytes(c.r.Header.Values("Accept"))
	if err := c.query.err; err != nil {
		return answer{}, err
	}
	path := c.r.PathValue("path")
	if err := sallyport.CheckPath(path); err != nil {
		return answer{}, err
	}
	ref, revision := c.skillRef(c.query.text("team_id")), sallyport.RevisionID(c.query.text("revision_id"))
	component, err := c.api.cfg.Skills.Component(c.ctx(), p, ref, revision, path)
	if err != nil {
		return answer{}, err
	}
	if asBytes {
		bytes, err := newRaw(component.Path, component.MediaType, component.SHA256, component.Content)
		return answer{raw: bytes}, err
	}
	data := componentData{Component: component}
	if utf8.Valid(component.Content) {
		data.Content = new(string(component.Content))
	} else {
		data.ContentBase64 = new(base64.StdEncoding.EncodeToString(component.Content))
	}
	return ok(data), nil
}
