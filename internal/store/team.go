package store

import (
	"context"
	"slices"

	"github.com/sallyport-dev/sallyport"
)

const teamColumns = `tenant_id, id, name, created_by, created_at`

func scanTeam(row scanner) (sallyport.Team, error) {
	var (
		team    sallyport.Team
		created int64
	)
	err := row.Scan(&team.TenantID, &team.ID, &team.Name, &team.CreatedBy, &created)
	team.CreatedAt = timeOf(created)
	return team, err
}

func teamNotFound(op string) error { return &sallyport.Error{Op: op, Code: sallyport.CodeTeamNotFound} }

const (
	selectTeams = `SELECT ` + teamColumns + ` FROM teams WHERE tenant_id = ?1 ORDER BY id`
	selectTeam  = `SELECT ` + teamColumns + ` FROM teams WHERE tenant_id = ?1 AND id = ?2`
	insertTeam  = `INSERT INTO teams (` + teamColumns + `) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING`
)

// Teams implements access.Directory.
func (s *Store) Teams(ctx context.Context, tenant sallyport.TenantID) ([]sallyport.Team, error) {
	teams, err := all(ctx, s.reader.session(), scanTeam, selectTeams, tenant)
	return teams, s.fault("store.teams", err)
}

// AddTeam implements access.Directory.
func (s *Store) AddTeam(ctx context.Context, tenant sallyport.TenantID, team sallyport.Team) error {
	const op = "store.add_team"
	if tenant == "" || team.ID == "" {
		return defect(op, "a team needs a tenant and an id")
	}
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		if err := inTenant(ctx, tx, op, tenant); err != nil {
			return err
		}
		added, err := tx.exec(ctx, insertTeam, tenant, team.ID, team.Name, team.CreatedBy, micros(team.CreatedAt))
		if err == nil && added == 0 {
			err = &sallyport.Error{Op: op, Code: sallyport.CodeNameTaken}
		}
		return err
	})
}

// inTenant is TENANT_NOT_FOUND where there is no such tenant.
func inTenant(ctx context.Context, tx *session, op string, tenant sallyport.TenantID) error {
	_, found, err := one(ctx, tx, scanTenant, selectTenant, tenant)
	if err == nil && !found {
		err = tenantNotFound(op)
	}
	return err
}

// inTeam is TEAM_NOT_FOUND where there is no such team.
func inTeam(ctx context.Context, tx *session, op string, tenant sallyport.TenantID, team sallyport.TeamID) error {
	_, found, err := one(ctx, tx, scanTeam, selectTeam, tenant, team)
	if err == nil && !found {
		err = teamNotFound(op)
	}
	return err
}

const (
	countSkillsOfTeam = `SELECT COUNT(*) FROM skills WHERE tenant_id = ?1 AND team_id = ?2`
	deleteMembers     = `DELETE FROM team_members WHERE tenant_id = ?1 AND team_id = ?2`
	deleteTeam        = `DELETE FROM teams WHERE tenant_id = ?1 AND id = ?2`
)

// RemoveTeam implements access.Directory.
func (s *Store) RemoveTeam(ctx context.Context, tenant sallyport.TenantID, id sallyport.TeamID) error {
	const op = "store.remove_team"
	return s.write(ctx, op, func(ctx context.Context, tx *session) error {
		if err := inTeam(ctx, tx, op, tenant, id); err != nil {
			return err
		}
		skills, _, err := one(ctx, tx, scalar[int], countSkillsOfTeam, tenant, id)
		if err != nil {
			return err
		}
		if skills > 0 {
			return sallyport.Errorf(op, sallyport.CodeInUse, "the team has %d skills, archived ones too, and a team with skills stays", skills)
		}
		keys, err := all(ctx, tx, scanKey, selectKeys, tenant)
		if err != nil {
			return err
		}
		for _, key := range keys {
			if key.RevokedAt == nil && slices.Contains(key.Teams, id) {
				return sallyport.Errorf(op, sallyport.CodeInUse, "the key %s is in the team; revoke it first", key.ID)
			}
		}
		if _, err := tx.exec(ctx, deleteMembers, tenant, id); err != nil {
			return err
		}
		_, err = tx.exec(ctx, deleteTeam, tenant, id)
		return err
	})
}

const memberColumns = `tenant_id, team_id, principal_id, added_by, added_at`

func scanMember(row scanner) (sallyport.Member, error) {
	var (
		member sallyport.Member
		added  int64
	)
	err := row.Scan(&member.TenantID, &member.TeamID, &member.PrincipalID, &member.AddedBy, &added)
	member.AddedAt = timeOf(added)
	return member, err
}

const (
	selectMembers     = `SELECT ` + memberColumns + ` FROM team_members WHERE tenant_id = ?1 AND team_id = ?2 ORDER BY principal_id`
	selectMemberships = `SELECT team_id FROM team_members WHERE tenant_id = ?1 AND principal_id = ?2 ORDER BY team_id`
	insertMember      = `INSERT INTO team_members (` + memberColumns + `) VALUES (?1, ?2, ?3, ?4, ?5) ON CONFLICT DO NOTHING`
	deleteMember      = `DELETE FROM team_members WHERE tenant_id = ?1 AND team_id = ?2 AND principal_id = ?3`
)

// Members implements access.Directory.
func (s *Store) Members(ctx context.Context, tenant sallyport.TenantID, team sallyport.TeamID) ([]sallyport.Member, error) {
	const op = "store.members"
	var members []sallyport.Member
	err := s.reader.snapshot(ctx, func(tx *session) (err error) {
		if err = inTeam(ctx, tx, op, tenant, team); err == nil {
			members, err = all(ctx, tx, scanMember, selectMembers, tenant, team)
		}
		return err
	})
	return members, s.fault(op, err)
}

// AddMember implements access.Directory.
func (s *Store) AddMember(ctx context.Context, tenant sallyport.TenantID, member sallyport.Member) (bool, error) {
	const op = "store.add_member"
	if tenant == "" || member.PrincipalID == "" {
		return false, defect(op, "a member needs a tenant and a principal")
	}
	var added int64
	err := s.write(ctx, op, func(ctx context.Context, tx *session) (err error) {
		if err = inTeam(ctx, tx, op, tenant, member.TeamID); err == nil {
			added, err = tx.exec(ctx, insertMember, tenant, member.TeamID, member.PrincipalID, member.AddedBy, micros(member.AddedAt))
		}
		return err
	})
	return added == 1 && err == nil, err
}

// RemoveMember implements access.Directory.
func (s *Store) RemoveMember(ctx context.Context, tenant sallyport.TenantID, team sallyport.TeamID, principal sallyport.PrincipalID) (bool, error) {
	const op = "store.remove_member"
	var removed int64
	err := s.write(ctx, op, func(ctx context.Context, tx *session) (err error) {
		if err = inTeam(ctx, tx, op, tenant, team); err == nil {
			removed, err = tx.exec(ctx, deleteMember, tenant, team, principal)
		}
		return err
	})
	return removed == 1 && err == nil, err
}
