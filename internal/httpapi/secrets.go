package httpapi

import (
	"encoding/base64"

	"github.com/sallyport-dev/sallyport"
)

// secretsData lists secrets without their values: no answer of this API ever holds one.
type secretsData struct {
	Secrets []sallyport.SecretInfo `json:"secrets"`
}

func listSecrets(c *call, p sallyport.Principal) (answer, error) {
	secrets, err := c.api.cfg.Secrets.List(c.ctx(), p)
	return ok(secretsData{list(secrets)}), err
}

type secretBody struct {
	Value       *string `json:"value"`
	ValueBase64 *string `json:"value_base64"`
}

func setSecret(c *call, p sallyport.Principal) (answer, error) {
	var body secretBody
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	var value sallyport.Secret
	switch {
	case (body.Value == nil) == (body.ValueBase64 == nil):
		return answer{}, invalid("send either value or value_base64")
	case body.Value != nil:
		value = sallyport.Secret(*body.Value)
	default:
		decoded, err := base64.StdEncoding.DecodeString(*body.ValueBase64)
		if err != nil {
			return answer{}, invalid("/value_base64 is not base64")
		}
		value = sallyport.Secret(decoded)
	}
	info, err := c.api.cfg.Secrets.Set(c.ctx(), p, c.r.PathValue("name"), value)
	return ok(info), err
}

type secretRemovalData struct {
	Name    string `json:"name"`
	Removed bool   `json:"removed"`
}

func removeSecret(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	name := c.r.PathValue("name")
	return ok(secretRemovalData{name, true}), c.api.cfg.Secrets.Remove(c.ctx(), p, name)
}

func rotateSecretKey(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	done, err := c.api.cfg.Secrets.RotateKey(c.ctx(), p)
	return ok(done), err
}
