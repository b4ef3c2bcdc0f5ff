package postgres

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"
)

// ErrForeignSchema says that the schema, or a table in it, belongs to a role
// that could run code with the rights of this one.
var ErrForeignSchema = errors.New("the schema was prepared by another role")

// checkSchema refuses a schema that another role prepared. The owner of a table
// can give it triggers, and these run with the rights of whoever writes to it: so
// a superuser uses no table of a role that is none, and nobody creates tables in
// the schema of a role that is not theirs. current says that no migration is
// missing.
func (j *Journal) checkSchema(ctx context.Context, q querier, current bool) error {
	var owner, table string
	var superuser, trusted, member bool
	err := q.QueryRow(ctx, `SELECT pg_get_userbyid(n.nspowner), r.rolsuper, o.rolsuper, pg_has_role(n.nspowner, 'MEMBER'),
			coalesce((SELECT min(c.relname) FROM pg_class c WHERE c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f') AND c.relowner <> n.nspowner), '')
		FROM pg_namespace n JOIN pg_roles o ON o.oid = n.nspowner JOIN pg_roles r ON r.rolname = current_user
		WHERE n.nspname = $1`, j.schema).Scan(&owner, &superuser, &trusted, &member, &table)
	switch {
	case noRows(err):
		return nil
	case err != nil:
		return err
	case superuser && !trusted:
		return fmt.Errorf("schema %s belongs to role %s, and its triggers would run with the rights of a superuser: connect as that role: %w", j.schema, owner, ErrForeignSchema)
	case !current && !member:
		return fmt.Errorf("schema %s belongs to role %s, which must create its tables: connect as that role once: %w", j.schema, owner, ErrForeignSchema)
	case table != "":
		return fmt.Errorf("table %s in schema %s does not belong to role %s, the owner of the schema: %w", table, j.schema, owner, ErrForeignSchema)
	}
	return nil
}

// checkRights refuses a role that would fail in the middle of its work, or that
// does not see all rows: collection deletes what no visible entry names.
func (j *Journal) checkRights(ctx context.Context, conn *pgx.Conn) error {
	var role, hidden string
	var lacking []string
	err := conn.QueryRow(ctx, `SELECT current_user, coalesce(min(c.relname) FILTER (WHERE row_security_active(c.oid)), ''),
			array_agg(p.right || ' on ' || c.relname ORDER BY c.relname, p.right) FILTER (WHERE NOT has_table_privilege(c.oid, p.right))
		FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace CROSS JOIN unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS p ("right")
		WHERE n.nspname = $1 AND c.relkind IN ('r', 'p')`, j.schema).Scan(&role, &hidden, &lacking)
	switch {
	case err != nil:
		return err
	case len(lacking) > 0:
		return fmt.Errorf("%w: role %s has no %s: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA %s TO %s", ErrRights, role, strings.Join(lacking, ", "), j.schema, role)
	case hidden != "":
		return fmt.Errorf("%w: row security can hide rows of table %s from role %s", ErrRights, hidden, role)
	}
	return nil
}
