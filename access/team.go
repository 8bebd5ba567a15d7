package access

import (
	"context"
	"slices"

	"github.com/sallyport-dev/sallyport"
)

const (
	opTeams   = "access.teams"
	opMembers = "access.members"
)

// maxPrincipalID bounds a principal's id, in bytes.
const maxPrincipalID = 600

// plainPrincipal refuses what is no id of a principal: printable ASCII without blanks, as keys and issuers make them.
func plainPrincipal(op string, id sallyport.PrincipalID) error {
	ok := id != "" && len(id) <= maxPrincipalID && !Reserved(id)
	for i := range len(id) {
		ok = ok && id[i] > ' ' && id[i] <= '~'
	}
	if ok {
		return nil
	}
	return sallyport.Errorf(op, sallyport.CodeInvalidArgument,
		"the id of a principal is at most %d printable ASCII characters, such as key:ID or oidc:NAME:SUBJECT", maxPrincipalID)
}

// Teams lists the teams of p's tenant. Needs admin.
func (s *Service) Teams(ctx context.Context, p sallyport.Principal) ([]sallyport.Team, error) {
	if err := p.Require(opTeams, sallyport.ScopeAdmin); err != nil {
		return nil, err
	}
	return s.cfg.Store.Teams(ctx, p.TenantID)
}

// Team returns one team of p's tenant. Needs admin; TEAM_NOT_FOUND.
func (s *Service) Team(ctx context.Context, p sallyport.Principal, id sallyport.TeamID) (sallyport.Team, error) {
	teams, err := s.Teams(ctx, p)
	if err != nil {
		return sallyport.Team{}, err
	}
	at := slices.IndexFunc(teams, func(t sallyport.Team) bool { return t.ID == id })
	if at < 0 {
		return sallyport.Team{}, &sallyport.Error{Op: opTeams, Code: sallyport.CodeTeamNotFound}
	}
	return teams[at], nil
}

// CreateTeam makes a team and audits it before it is stored. Needs admin; NAME_TAKEN.
func (s *Service) CreateTeam(ctx context.Context, p sallyport.Principal, id sallyport.TeamID, name string) (sallyport.Team, error) {
	if err := p.Require(opTeams, sallyport.ScopeAdmin); err != nil {
		return sallyport.Team{}, err
	}
	if err := plainName(opTeams, "team", string(id)); err != nil {
		return sallyport.Team{}, err
	}
	name, err := title(opTeams, name, string(id))
	if err != nil {
		return sallyport.Team{}, err
	}
	taken := sallyport.Errorf(opTeams, sallyport.CodeNameTaken, "there is a team %s already", id)
	if _, err := s.Team(ctx, p, id); err == nil {
		return sallyport.Team{}, taken
	} else if sallyport.CodeOf(err) != sallyport.CodeTeamNotFound {
		return sallyport.Team{}, err
	}
	now := s.now()
	team := sallyport.Team{TenantID: p.TenantID, ID: id, Name: name, CreatedBy: p.ID, CreatedAt: now}
	if err := s.record(ctx, p, now, sallyport.ActionTeamCreate, string(id), change{nil, team}); err != nil {
		return sallyport.Team{}, err
	}
	if err := s.cfg.Store.AddTeam(ctx, p.TenantID, team); err != nil {
		s.unstored(ctx, sallyport.ActionTeamCreate, string(id), err)
		return sallyport.Team{}, err
	}
	return team, nil
}

// RemoveTeam removes a team with its memberships and audits that before it is stored. Needs admin; TEAM_NOT_FOUND, and IN_USE while
// it owns skills or is on a key that is not revoked. The default team stays.
func (s *Service) RemoveTeam(ctx context.Context, p sallyport.Principal, id sallyport.TeamID) error {
	team, err := s.Team(ctx, p, id)
	if err != nil {
		return err
	}
	if id == sallyport.DefaultTeam {
		return sallyport.Errorf(opTeams, sallyport.CodeInUse, "every principal is in the team %s, so it stays", id)
	}
	members, err := s.cfg.Store.Members(ctx, p.TenantID, id)
	if err != nil {
		return err
	}
	now := s.now()
	before := struct {
		Team    sallyport.Team     `json:"team"`
		Members []sallyport.Member `json:"members"`
	}{team, members}
	if err := s.record(ctx, p, now, sallyport.ActionTeamRemove, string(id), change{before, nil}); err != nil {
		return err
	}
	if err := s.cfg.Store.RemoveTeam(ctx, p.TenantID, id); err != nil {
		s.unstored(ctx, sallyport.ActionTeamRemove, string(id), err)
		return err
	}
	return nil
}

// Members lists the members of a team. Needs admin; TEAM_NOT_FOUND. Everybody is in the default team, so its list names only those
// who were added to it.
func (s *Service) Members(ctx context.Context, p sallyport.Principal, team sallyport.TeamID) ([]sallyport.Member, error) {
	if err := p.Require(opMembers, sallyport.ScopeAdmin); err != nil {
		return nil, err
	}
	return s.cfg.Store.Members(ctx, p.TenantID, team)
}

// AddMember puts a principal into a team, from its next call on, and audits that before it is stored. Needs admin; TEAM_NOT_FOUND. One
// that is a member already stays what it is.
func (s *Service) AddMember(ctx context.Context, p sallyport.Principal, team sallyport.TeamID, principal sallyport.PrincipalID) (sallyport.Member, error) {
	members, err := s.Members(ctx, p, team)
	if err != nil {
		return sallyport.Member{}, err
	}
	if err := plainPrincipal(opMembers, principal); err != nil {
		return sallyport.Member{}, err
	}
	if at := slices.IndexFunc(members, func(m sallyport.Member) bool { return m.PrincipalID == principal }); at >= 0 {
		return members[at], nil
	}
	now := s.now()
	member := sallyport.Member{TenantID: p.TenantID, TeamID: team, PrincipalID: principal, AddedBy: p.ID, AddedAt: now}
	if err := s.record(ctx, p, now, sallyport.ActionMemberAdd, string(team), change{nil, member}); err != nil {
		return sallyport.Member{}, err
	}
	if _, err := s.cfg.Store.AddMember(ctx, p.TenantID, member); err != nil {
		s.unstored(ctx, sallyport.ActionMemberAdd, string(team), err)
		return sallyport.Member{}, err
	}
	return member, nil
}

// RemoveMember takes a principal out of a team, from its next call on, and audits that before it is stored. Needs admin;
// TEAM_NOT_FOUND, PRINCIPAL_NOT_FOUND for one that is no member.
func (s *Service) RemoveMember(ctx context.Context, p sallyport.Principal, team sallyport.TeamID, principal sallyport.PrincipalID) error {
	members, err := s.Members(ctx, p, team)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(members, func(m sallyport.Member) bool { return m.PrincipalID == principal })
	if at < 0 {
		return sallyport.Errorf(opMembers, sallyport.CodePrincipalNotFound, "the team has no such member")
	}
	if err := s.record(ctx, p, s.now(), sallyport.ActionMemberRemove, string(team), change{members[at], nil}); err != nil {
		return err
	}
	if _, err := s.cfg.Store.RemoveMember(ctx, p.TenantID, team, principal); err != nil {
		s.unstored(ctx, sallyport.ActionMemberRemove, string(team), err)
		return err
	}
	return nil
}
