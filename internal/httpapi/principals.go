package httpapi

import (
	"github.com/sallyport-dev/sallyport"
	"github.com/sallyport-dev/sallyport/access"
)

type rolesData struct {
	Roles []sallyport.Role `json:"roles"`
}

func shownRole(role sallyport.Role) sallyport.Role {
	role.Scopes = list(role.Scopes)
	return role
}

func listRoles(c *call, p sallyport.Principal) (answer, error) {
	roles, err := c.api.cfg.Directory.Roles(c.ctx(), p)
	if err != nil {
		return answer{}, err
	}
	data := rolesData{Roles: []sallyport.Role{}}
	for _, role := range roles {
		data.Roles = append(data.Roles, shownRole(role))
	}
	return ok(data), nil
}

func (c *call) role() sallyport.RoleName { return sallyport.RoleName(c.r.PathValue("role")) }

func showRole(c *call, p sallyport.Principal) (answer, error) {
	role, err := c.api.cfg.Directory.Role(c.ctx(), p, c.role())
	return ok(shownRole(role)), err
}

type roleBody struct {
	Description string    `json:"description"`
	Scopes      []*string `json:"scopes"`
}

func setRole(c *call, p sallyport.Principal) (answer, error) {
	var body roleBody
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	if body.Scopes == nil {
		return answer{}, invalid("scopes is required; an empty list gives nothing")
	}
	names, err := texts("/scopes", body.Scopes)
	if err != nil {
		return answer{}, err
	}
	role := sallyport.Role{Name: c.role(), Description: body.Description}
	for _, name := range names {
		role.Scopes = append(role.Scopes, sallyport.Scope(name))
	}
	role, err = c.api.cfg.Directory.SetRole(c.ctx(), p, role)
	return ok(shownRole(role)), err
}

func removeRole(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	return ok(goneData{string(c.role()), true}), c.api.cfg.Directory.RemoveRole(c.ctx(), p, c.role())
}

type principalsData struct {
	Principals []sallyport.Account `json:"principals"`
}

func shownAccount(account sallyport.Account) sallyport.Account {
	account.Roles = list(account.Roles)
	return account
}

func listPrincipals(c *call, p sallyport.Principal) (answer, error) {
	accounts, err := c.api.cfg.Directory.Accounts(c.ctx(), p)
	if err != nil {
		return answer{}, err
	}
	data := principalsData{Principals: []sallyport.Account{}}
	for _, account := range accounts {
		data.Principals = append(data.Principals, shownAccount(account))
	}
	return ok(data), nil
}

func (c *call) principal() sallyport.PrincipalID {
	return sallyport.PrincipalID(c.r.PathValue("principal"))
}

func showPrincipal(c *call, p sallyport.Principal) (answer, error) {
	account, err := c.api.cfg.Directory.Account(c.ctx(), p, c.principal())
	return ok(shownAccount(account)), err
}

type principalBody struct {
	Roles    []*string `json:"roles"`
	Disabled *bool     `json:"disabled"`
}

func setPrincipal(c *call, p sallyport.Principal) (answer, error) {
	var body principalBody
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	req := access.AccountRequest{Disabled: body.Disabled}
	names, err := texts("/roles", body.Roles)
	if err != nil {
		return answer{}, err
	}
	if names != nil {
		roles := []sallyport.RoleName{}
		for _, name := range names {
			roles = append(roles, sallyport.RoleName(name))
		}
		req.Roles = &roles
	}
	account, err := c.api.cfg.Directory.SetAccount(c.ctx(), p, c.principal(), req)
	return ok(shownAccount(account)), err
}
