package httpapi

import (
	"github.com/sallyport-dev/sallyport"
)

type teamsData struct {
	Teams []sallyport.Team `json:"teams"`
}

func listTeams(c *call, p sallyport.Principal) (answer, error) {
	teams, err := c.api.cfg.Directory.Teams(c.ctx(), p)
	return ok(teamsData{list(teams)}), err
}

func createTeam(c *call, p sallyport.Principal) (answer, error) {
	var body namedBody
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	team, err := c.api.cfg.Directory.CreateTeam(c.ctx(), p, sallyport.TeamID(body.ID), body.Name)
	return created(team, "/v1/teams/"+string(team.ID)), err
}

func (c *call) team() sallyport.TeamID { return sallyport.TeamID(c.r.PathValue("team")) }

func showTeam(c *call, p sallyport.Principal) (answer, error) {
	team, err := c.api.cfg.Directory.Team(c.ctx(), p, c.team())
	return ok(team), err
}

// goneData says that something is gone.
type goneData struct {
	ID      string `json:"id"`
	Removed bool   `json:"removed"`
}

func removeTeam(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	return ok(goneData{string(c.team()), true}), c.api.cfg.Directory.RemoveTeam(c.ctx(), p, c.team())
}

type membersData struct {
	Members []sallyport.Member `json:"members"`
}

func listMembers(c *call, p sallyport.Principal) (answer, error) {
	members, err := c.api.cfg.Directory.Members(c.ctx(), p, c.team())
	return ok(membersData{list(members)}), err
}

type memberBody struct {
	PrincipalID string `json:"principal_id"`
}

func addMember(c *call, p sallyport.Principal) (answer, error) {
	var body memberBody
	if err := c.decode(&body); err != nil {
		return answer{}, err
	}
	member, err := c.api.cfg.Directory.AddMember(c.ctx(), p, c.team(), sallyport.PrincipalID(body.PrincipalID))
	return ok(member), err
}

func removeMember(c *call, p sallyport.Principal) (answer, error) {
	if err := c.noBody(); err != nil {
		return answer{}, err
	}
	id := c.r.PathValue("principal")
	return ok(goneData{id, true}), c.api.cfg.Directory.RemoveMember(c.ctx(), p, c.team(), sallyport.PrincipalID(id))
}
