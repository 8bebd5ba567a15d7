package httpapi

import (
	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

type keysData struct {
	Keys []sallyport.Key `json:"keys"`
}

func shownKey(k sallyport.Key) sallyport.Key {
	k.Scopes, k.Teams = list(k.Scopes), list(k.Teams)
	return k
}

func listKeys(c *call, p sallyport.Principal) (answer, error) {
	keys, err := c.api.cfg.Access.Keys(c.ctx(), p)
	if err != nil {
		return answer{}, err
	}
	data := keysData{Keys: []sallyport.Key{}}
	for _, k := range keys {
		data.Keys = append(data.Keys, shownKey(k))
	}
	return ok(data), nil
}

type keyBody struct {
	Name      string    `json:"name"`
	Scopes    []string  `json:"scopes"`
	Roles     []*string `json:"roles"`
	Teams     []*string `json:"teams"`
	ExpiresAt *string   `json:"expires_at"`
}

// createKey is the only answer that ever holds a key's secret.
func createKey(c *call, p sallyport.Principal) (answer, error) {
	var body keyBody
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	req := access.KeyRequest{Name: body.Name}
	for i, name := range body.Scopes {
		scope := sallyport.Scope(name)
		if !scope.Valid() {
			return answer{}, invalid("/scopes/%d is none of %v", i, sallyport.Scopes())
		}
		req.Scopes = append(req.Scopes, scope)
	}
	roles, err := texts("/roles", body.Roles)
	if err != nil {
		return answer{}, err
	}
	for _, role := range roles {
		req.Roles = append(req.Roles, sallyport.RoleName(role))
	}
	teams, err := texts("/teams", body.Teams)
	if err != nil {
		return answer{}, err
	}
	for _, team := range teams {
		req.Teams = append(req.Teams, sallyport.TeamID(team))
	}
	if req.ExpiresAt, err = instant("expires_at", body.ExpiresAt); err != nil {
		return answer{}, err
	}
	key, err := c.api.cfg.Access.CreateKey(c.ctx(), p, req)
	if err != nil {
		return answer{}, err
	}
	key.Key = shownKey(key.Key)
	return created(key, ""), nil
}

type keyRevocationData struct {
	KeyID   sallyport.KeyID `json:"key_id"`
	Revoked bool            `json:"revoked"`
}

func revokeKey(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	id := sallyport.KeyID(c.r.PathValue("id"))
	return ok(keyRevocationData{id, true}), c.api.cfg.Access.RevokeKey(c.ctx(), p, id)
}
