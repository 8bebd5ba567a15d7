package store_test

import (
	"database/sql"
	"go/ast"
	"go/constant"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	_ "modernc.org/sqlite"
)

// tenantless are the statements on tenant tables that do not take the tenant first, each with its reason.
var tenantless = map[string]string{
	"selectKeyByHash":     "the key is how the tenant is learned",
	"selectUnfinished":    "a restart closes what every tenant left open",
	"selectTenants":       "lists the tenants themselves",
	"selectSecretTenants": "one key encrypts the secrets of every tenant",
	"deleteUnheldBlob":    "a blob goes only when no tenant holds it",
	"selectAllTenants":    "lists the tenants themselves",
	"selectExpiring":      "notes what ends, for every tenant",
	"countExpiring":       "counts what ends, for every tenant",
	"countOpen":           "a backup is of all tenants",
	"selectUnheldBlobs":   "a blob goes only when no tenant holds it",
}

// sharedTables have no tenant, each with its reason.
var sharedTables = map[string]string{
	"blobs":            "content by its sha256, reached through a tenant's component or artifact",
	"skill_search":     "the index of skills.seq, joined with skills",
	"goose_db_version": "the version of the schema",
}

var (
	isStatement = regexp.MustCompile(`(?i)^\s*(SELECT|INSERT|UPDATE|DELETE|WITH|REPLACE)\b`)
	// Each use of a table, with the alias it gets.
	tableUse   = regexp.MustCompile(`\b(FROM|JOIN|UPDATE|INTO)\s+([a-z_]+)(?:\s+AS\s+([a-z_]+))?`)
	tenantUse  = regexp.MustCompile(`\bWHERE\s+(?:([a-z_]+)\.)?tenant_id = \?1\b`)
	insertHead = regexp.MustCompile(`\bINTO\s+[a-z_]+\s*\(\s*tenant_id\s*,[^)]*\)\s*VALUES\s*\(\s*\?1\s*,`)
	lowerWord  = regexp.MustCompile(`\b(select|insert|update|delete|from|where|join|values|order by|limit|and|or)\b`)
)

// missesTenant says why a statement does not take the tenant first; empty when it does.
func missesTenant(statement string, tenantTables map[string]bool) string {
	statement = strings.Join(strings.Fields(statement), " ")
	reads := 0
	for _, use := range tableUse.FindAllStringSubmatch(statement, -1) {
		if !tenantTables[use[2]] {
			continue
		}
		switch use[1] {
		case "INTO":
			if !insertHead.MatchString(statement) {
				return "inserts into " + use[2] + " without the tenant as the first column and value"
			}
		case "JOIN":
			// A join reads the tenant table through the WHERE of its own SELECT.
			if !strings.Contains(statement, "WHERE "+use[3]+".tenant_id = ?1") {
				return "joins " + use[2] + " without its tenant first in WHERE"
			}
		default:
			reads++
		}
	}
	if found := len(tenantUse.FindAllString(statement, -1)); found < reads {
		return "reads tenant tables more often than it has the tenant first in WHERE"
	}
	return ""
}

func TestMissesTenant(t *testing.T) {
	t.Parallel()
	tables := map[string]bool{"skills": true, "grants": true}
	for statement, bad := range map[string]bool{
		`SELECT id FROM skills WHERE tenant_id = ?1 AND id = ?2`:                                    false,
		`SELECT s.id FROM skills AS s JOIN blobs AS b ON b.x = s.x WHERE s.tenant_id = ?1`:          false,
		`SELECT s.id FROM skill_search JOIN skills AS s ON s.seq = 1 WHERE s.tenant_id = ?1 AND x`:  false,
		`INSERT INTO grants (tenant_id, id) VALUES (?1, ?2)`:                                        false,
		`SELECT COUNT(*) FROM blobs`:                                                                false,
		`SELECT id FROM skills`:                                                                     true,
		`SELECT id FROM skills WHERE id = ?2 AND tenant_id = ?1`:                                    true,
		`SELECT id FROM skills WHERE tenant_id = ?2`:                                                true,
		`SELECT id FROM skills WHERE tenant_id = ?1 AND x IN (SELECT id FROM grants WHERE id = ?2)`: true,
		`SELECT s.id FROM skill_search JOIN skills AS s ON s.seq = 1 WHERE skill_search MATCH ?1`:   true,
		`UPDATE grants SET x = 1 WHERE id = ?2`:                                                     true,
		`DELETE FROM grants WHERE id = ?1`:                                                          true,
		`INSERT INTO grants (id, tenant_id) VALUES (?1, ?2)`:                                        true,
		`INSERT INTO grants (tenant_id, id) VALUES (?2, ?1)`:                                        true,
		"SELECT id\n\tFROM skills\n\tWHERE tenant_id = ?10 AND x":                                   true,
	} {
		if got := missesTenant(statement, tables); (got != "") != bad {
			t.Errorf("%s: got %q", statement, got)
		}
	}
}

// Every statement on a tenant's table takes the tenant first.
func TestStatementsTakeTheTenantFirst(t *testing.T) {
	t.Parallel()
	tables := tenantTables(t)
	statements, loose := sqlConstants(t)
	if len(statements) < 40 {
		t.Fatalf("only %d statements were found", len(statements))
	}
	for _, name := range slices.Sorted(maps.Keys(statements)) {
		why := missesTenant(statements[name], tables)
		reason, excused := tenantless[name]
		switch {
		case why != "" && !excused:
			t.Errorf("%s %s", name, why)
		case why == "" && excused:
			t.Errorf("%s needs no excuse: %s", name, reason)
		}
		if word := lowerWord.FindString(statements[name]); word != "" {
			t.Errorf("%s writes the keyword %q in lower case", name, word)
		}
	}
	for name := range tenantless {
		if _, found := statements[name]; !found {
			t.Errorf("%s is excused but does not exist", name)
		}
	}
	for _, place := range loose {
		t.Errorf("%s: a statement is a constant", place)
	}
}

// tenantTables asks a real database, so that no table is forgotten.
func tenantTables(t *testing.T) map[string]bool {
	t.Helper()
	path := filepath.Join(t.TempDir(), "sallyport.db")
	open(t, path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close() //nolint:errcheck // it only read
	rows, err := db.QueryContext(t.Context(), `SELECT m.name, EXISTS (SELECT 1 FROM pragma_table_info(m.name) AS c WHERE c.name = 'tenant_id')
		FROM sqlite_schema AS m WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite_%' AND m.name NOT LIKE 'skill_search_%'`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close() //nolint:errcheck // Err below says what matters
	tables := map[string]bool{}
	for rows.Next() {
		var (
			name   string
			tenant bool
		)
		if err := rows.Scan(&name, &tenant); err != nil {
			t.Fatal(err)
		}
		if _, shared := sharedTables[name]; shared == tenant {
			t.Errorf("the table %s must either have a tenant or be shared for a reason", name)
		}
		if tenant {
			tables[name] = true
		}
	}
	if err := rows.Err(); err != nil || len(tables) < 8 {
		t.Fatalf("got %d tables, %v", len(tables), err)
	}
	return tables
}

// sqlConstants evaluates the string constants of the package and returns those that are statements, and the places of
// statements that are no constants. What is asked before the schema is known (sqlite_file.go) is about no tenant.
func sqlConstants(t *testing.T) (statements map[string]string, loose []string) {
	t.Helper()
	names, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	fileSet, values := token.NewFileSet(), map[string]ast.Expr{}
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(fileSet, name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, declaration := range file.Decls {
			switch d := declaration.(type) {
			case *ast.GenDecl:
				for _, spec := range d.Specs {
					if value, ok := spec.(*ast.ValueSpec); ok && d.Tok == token.CONST && len(value.Values) == len(value.Names) {
						for i, ident := range value.Names {
							values[ident.Name] = value.Values[i]
						}
					}
				}
			case *ast.FuncDecl:
				ast.Inspect(d, func(node ast.Node) bool {
					literal, ok := node.(*ast.BasicLit)
					if ok && literal.Kind == token.STRING && name != "sqlite_file.go" && name != "snapshot.go" && isStatement.MatchString(strings.Trim(literal.Value, "`\"")) {
						loose = append(loose, fileSet.Position(literal.Pos()).String())
					}
					return true
				})
			}
		}
	}
	var evaluate func(expression ast.Expr) (string, bool)
	evaluate = func(expression ast.Expr) (string, bool) {
		switch e := expression.(type) {
		case *ast.BasicLit:
			if e.Kind != token.STRING {
				return "", false
			}
			return constant.StringVal(constant.MakeFromLiteral(e.Value, e.Kind, 0)), true
		case *ast.Ident:
			value, found := values[e.Name]
			if !found {
				return "", false
			}
			return evaluate(value)
		case *ast.BinaryExpr:
			left, okLeft := evaluate(e.X)
			right, okRight := evaluate(e.Y)
			return left + right, okLeft && okRight
		case *ast.ParenExpr:
			return evaluate(e.X)
		}
		return "", false
	}
	statements = map[string]string{}
	for name, expression := range values {
		if text, ok := evaluate(expression); ok && isStatement.MatchString(text) {
			statements[name] = text
		}
	}
	return statements, loose
}
