package container

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// session is an engine whose version is known.
type session struct {
	*engine
	prefix string // "/v1.44"
	arch   string // as Go names it
	name   string // "Docker", "Podman"

	cpus   int64  // of its machine
	volume string // holds PID 1's program
	filter []byte // for its machine
}

// open asks the engine what it is.
func (e *engine) open(ctx context.Context) (*session, error) {
	var version struct {
		APIVersion, MinAPIVersion, Os, Arch, Version string
		Components                                   []struct{ Name string }
	}
	if err := e.call(ctx, http.MethodGet, "/version", nil, nil, &version); err != nil {
		return nil, err
	}
	theirs, okay := minorVersion(version.APIVersion)
	least, _ := minorVersion(version.MinAPIVersion)
	use := min(theirs, newestAPI)
	switch {
	case !okay || theirs < oldestAPI:
		return nil, fmt.Errorf("the engine speaks version %.20q of the API; 1.%d or newer is needed", version.APIVersion, oldestAPI)
	case least > use:
		use = least // it is newer than this client, and compatible as far as it says
	}
	s := &session{engine: e, prefix: "/v1." + strconv.Itoa(use), arch: version.Arch, name: "Docker"}
	for _, component := range version.Components {
		if strings.Contains(component.Name, "Podman") {
			s.name = "Podman"
		}
	}
	if version.Os != "linux" {
		return nil, fmt.Errorf("the engine starts containers of %.20q, and scripts need linux", version.Os)
	}
	return s, nil
}

func minorVersion(text string) (int, bool) {
	major, minor, _ := strings.Cut(text, ".")
	n, err := strconv.Atoi(minor)
	return n, err == nil && major == "1"
}

// info asks what the engine says about its machine.
func (s *session) info(ctx context.Context) error {
	var info struct{ NCPU int64 }
	err := s.call(ctx, http.MethodGet, s.prefix+"/info", nil, nil, &info)
	s.cpus = info.NCPU
	return err
}

// image is what matters of an image.
type image struct {
	ID           string `json:"Id"`
	Architecture string
	Config       struct{ Volumes map[string]struct{} }

	ref string // what it was asked for by
}

// digest names the bytes of the image: as it was asked for by digest, else the engine's id of it.
func (i image) digest() string {
	if _, digest, pinned := strings.Cut(i.ref, "@"); pinned {
		return digest
	}
	return i.ID
}

func (s *session) inspectImage(ctx context.Context, ref string) (image, error) {
	found := image{ref: ref}
	err := s.call(ctx, http.MethodGet, s.prefix+"/images/"+ref+"/json", nil, nil, &found)
	if err == nil && !strings.HasPrefix(found.ID, "sha256:") {
		found.ID = "sha256:" + found.ID // as older versions of Podman write it
	}
	if err == nil && !imageID(found.ID) {
		err = fmt.Errorf("the engine names an image %.80q, which is no id", found.ID)
	}
	return found, err
}

func imageID(id string) bool { return imageFault(id, true) == "" && !strings.Contains(id, "@") }

// loadImage hands over an archive as `docker save` writes it.
func (s *session) loadImage(ctx context.Context, archive []byte) error {
	return s.call(ctx, http.MethodPost, s.prefix+"/images/load", url.Values{"quiet": {"1"}}, archive, nil)
}

func (s *session) createVolume(ctx context.Context, name string, labels map[string]string) error {
	in := map[string]any{"Name": name, "Labels": labels}
	return s.call(ctx, http.MethodPost, s.prefix+"/volumes/create", nil, in, nil)
}

// putArchive unpacks a tar archive below a folder of a container.
func (s *session) putArchive(ctx context.Context, container, folder string, archive []byte) error {
	return s.call(ctx, http.MethodPut, s.prefix+"/containers/"+container+"/archive", url.Values{"path": {folder}}, archive, nil)
}

// create makes a container of a name that we chose: should its answer be lost, we still know what to remove.
func (s *session) create(ctx context.Context, name string, body any) error {
	var made struct {
		ID string `json:"Id"`
	}
	err := s.call(ctx, http.MethodPost, s.prefix+"/containers/create", url.Values{"name": {name}}, body, &made)
	if err == nil && made.ID == "" {
		err = errors.New("the engine made a container without an id")
	}
	return err
}

func (s *session) start(ctx context.Context, name string) error {
	return s.call(ctx, http.MethodPost, s.prefix+"/containers/"+name+"/start", nil, nil, nil)
}

// remove kills a container and removes it with its volumes of no name. A container that is not there is removed.
func (s *session) remove(ctx context.Context, name string) error {
	err := s.call(ctx, http.MethodDelete, s.prefix+"/containers/"+name, url.Values{"force": {"1"}, "v": {"1"}}, nil, nil)
	if refusedWith(err, http.StatusNotFound) {
		return nil
	}
	return err
}

// gone reports whether the engine knows no container of this name.
func (s *session) gone(ctx context.Context, name string) bool {
	return refusedWith(s.call(ctx, http.MethodGet, s.prefix+"/containers/"+name+"/json", nil, nil, nil), http.StatusNotFound)
}

// listed is one container of a list.
type listed struct {
	ID      string `json:"Id"`
	Names   []string
	Labels  map[string]string
	State   string
	Created json.Number // seconds
}

// list finds containers by a label, in any state.
func (s *session) list(ctx context.Context, label string) ([]listed, error) {
	filters, err := json.Marshal(map[string][]string{"label": {label}})
	if err != nil {
		return nil, err
	}
	var found []listed
	err = s.call(ctx, http.MethodGet, s.prefix+"/containers/json", url.Values{"all": {"1"}, "filters": {string(filters)}}, nil, &found)
	return found, err
}

// killedForMemory asks whether the engine saw a process of the container killed for memory since then (seconds). It is for
// engines whose control groups PID 1 cannot see.
func (s *session) killedForMemory(ctx context.Context, name string, since, until int64) (bool, error) {
	filters, err := json.Marshal(map[string][]string{"container": {name}, "event": {"oom"}})
	if err != nil {
		return false, err
	}
	query := url.Values{"since": {strconv.FormatInt(since, 10)}, "until": {strconv.FormatInt(until, 10)}, "filters": {string(filters)}}
	killed := false
	err = s.call(ctx, http.MethodGet, s.prefix+"/events", query, nil, decoder(func(text []byte) error {
		for events := json.NewDecoder(bytes.NewReader(text)); events.More(); {
			var event struct{ Action, Status string }
			if err := events.Decode(&event); err != nil {
				return err
			}
			killed = killed || event.Action == "oom" || event.Status == "oom"
		}
		return nil
	}))
	return killed, err
}
