package httpapi

import (
	"github.com/sallyport-dev/sallyport"
)

type tenantsData struct {
	Tenants []sallyport.Tenant `json:"tenants"`
}

func listTenants(c *call, p sallyport.Principal) (answer, error) {
	tenants, err := c.api.cfg.Directory.Tenants(c.ctx(), p)
	return ok(tenantsData{list(tenants)}), err
}

// namedBody makes something with an id and, if it is sent, a name for people.
type namedBody struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

func createTenant(c *call, p sallyport.Principal) (answer, error) {
	var body namedBody
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	tenant, err := c.api.cfg.Directory.CreateTenant(c.ctx(), p, sallyport.TenantID(body.ID), body.Name)
	return created(tenant, "/v1/tenants/"+string(tenant.ID)), err
}

func showTenant(c *call, p sallyport.Principal) (answer, error) {
	tenant, err := c.api.cfg.Directory.Tenant(c.ctx(), p, sallyport.TenantID(c.r.PathValue("tenant")))
	return ok(tenant), err
}

func disableTenant(c *call, p sallyport.Principal) (answer, error) { return c.shut(p, true) }

func enableTenant(c *call, p sallyport.Principal) (answer, error) { return c.shut(p, false) }

func (c *call) shut(p sallyport.Principal, disable bool) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	tenant, err := c.api.cfg.Directory.DisableTenant(c.ctx(), p, sallyport.TenantID(c.r.PathValue("tenant")), disable)
	return ok(tenant), err
}
