package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm/database/internal/engine"
	"github.com/remit-dev/remit/perm"
)

// nameOf returns the name of a table in resources and records, in SQL syntax
// relative to the schema public. Two tables never have one name.
func nameOf(schema, table string) string {
	if schema == "public" {
		return part(table)
	}
	return part(schema) + "." + part(table)
}

func part(name string) string {
	if strings.ContainsAny(name, `."`) {
		return quote(name)
	}
	return name
}

// quote returns a name in SQL syntax.
func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// split returns a name of nameOf in SQL syntax.
func split(name string) string {
	var parts []string
	for rest := name; ; {
		var p string
		if strings.HasPrefix(rest, `"`) {
			end := 1
			for end < len(rest) && (rest[end] != '"' || end+1 < len(rest) && rest[end+1] == '"') {
				if rest[end] == '"' {
					end++
				}
				end++
			}
			p, rest = rest[:min(end+1, len(rest))], rest[min(end+1, len(rest)):]
		} else {
			var more bool
			if p, rest, more = strings.Cut(rest, "."); more {
				rest = "." + rest
			}
			p = quote(p)
		}
		parts = append(parts, p)
		if !strings.HasPrefix(rest, ".") {
			break
		}
		rest = rest[1:]
	}
	if len(parts) == 1 {
		return `"public".` + parts[0]
	}
	return strings.Join(parts, ".")
}

// touched is a set of accesses.
type touched []engine.Access

func (t *touched) add(a engine.Access) {
	if !slices.Contains(*t, a) {
		*t = append(*t, a)
	}
}

func reads(name string) engine.Access {
	return engine.Access{Action: perm.Read, Table: name, Statement: "select"}
}

func writes(name, statement string) engine.Access {
	return engine.Access{Action: perm.Write, Table: name, Statement: statement}
}

// node is a step of a plan.
type node struct {
	Type      string `json:"Node Type"`
	Operation string `json:"Operation"`
	Schema    string `json:"Schema"`
	Relation  string `json:"Relation Name"`
	Conflict  string `json:"Conflict Resolution"`
	Plans     []node `json:"Plans"`
	Targets   []struct {
		Schema   string `json:"Schema"`
		Relation string `json:"Relation Name"`
	} `json:"Target Tables"`
}

// planned returns the accesses of a statement, without running it. Only
// statements that can be prepared are possible: SELECT, INSERT, UPDATE, DELETE,
// MERGE and VALUES.
func (c *connection) planned(ctx context.Context, s engine.Statement, args [][]byte) (touched, error) {
	if err := c.do(ctx, "SAVEPOINT remit_plan"); err != nil {
		return nil, err
	}
	var plans []struct {
		Plan node `json:"Plan"`
	}
	r := c.ExecParams(ctx, "PREPARE remit_plan AS "+s.SQL, nil, nil, nil, nil).Read()
	err := r.Err
	if err != nil {
		err = fmt.Errorf("%w: the statement cannot run: valid is only one SELECT, INSERT, UPDATE, DELETE, MERGE or VALUES; a change of the schema or a copy of a file cannot be reverted: %w", engine.ErrRefused, err)
	} else if r = c.ExecParams(ctx, "EXPLAIN (VERBOSE, FORMAT JSON) "+s.SQL, args, nil, nil, nil).Read(); r.Err != nil {
		err = r.Err
	} else {
		err = json.Unmarshal(r.Rows[0][0], &plans)
	}
	if back := c.do(ctx, "ROLLBACK TO remit_plan", "RELEASE remit_plan", "DEALLOCATE ALL"); err == nil {
		err = back
	}
	if err != nil {
		return nil, err
	}
	var out touched
	for _, p := range plans {
		out.walk(p.Plan)
	}
	return out, nil
}

func (t *touched) walk(n node) {
	if n.Type == "ModifyTable" {
		kinds := []string{strings.ToLower(n.Operation)}
		switch {
		case n.Operation == "Merge":
			kinds = []string{"insert", "update", "delete"}
		case n.Conflict == "UPDATE":
			kinds = append(kinds, "update")
		}
		names := []string{}
		if n.Relation != "" {
			names = append(names, nameOf(n.Schema, n.Relation))
		}
		for _, target := range n.Targets {
			names = append(names, nameOf(target.Schema, target.Relation))
		}
		for _, name := range names {
			for _, k := range kinds {
				t.add(writes(name, k))
			}
		}
	} else if n.Relation != "" {
		t.add(reads(nameOf(n.Schema, n.Relation)))
	}
	for _, p := range n.Plans {
		t.walk(p)
	}
}

// lock is a relation that the transaction has locked.
type lock struct{ oid, name, kind, mode string }

// locks returns the relations that the transaction has touched so far, as the
// server records them.
func (c *connection) locks(ctx context.Context) ([]lock, error) {
	rows, err := c.all(ctx, `SELECT l.relation::text, n.nspname, k.relname, k.relkind::text, l.mode
		FROM pg_locks l JOIN pg_class k ON k.oid = l.relation JOIN pg_namespace n ON n.oid = k.relnamespace
		WHERE l.pid = pg_backend_pid() AND l.locktype = 'relation' AND l.granted AND k.oid >= 16384
			AND k.relkind IN ('r', 'v', 'm', 'p', 'f', 'S') AND NOT k.relnamespace = pg_my_temp_schema() AND n.nspname <> 'pg_toast'
			AND n.nspname <> 'information_schema' AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())`)
	var out []lock
	for _, r := range rows {
		out = append(out, lock{r[0], nameOf(r[1], r[2]), r[3], r[4]})
	}
	return out, err
}

// untrackedChanges returns accesses beyond the known ones, and refuses what no statement
// may do to a table. Own are tables on which this package created a trigger.
func untrackedChanges(locks []lock, known touched, own map[string]bool) (more touched, err error) {
	for _, l := range locks {
		switch l.mode {
		case "AccessShareLock", "RowShareLock":
		case "RowExclusiveLock":
			if l.kind == "S" {
				continue // nextval was called
			}
		case "ShareRowExclusiveLock":
			if own[l.name] {
				continue
			}
			fallthrough
		default:
			return nil, fmt.Errorf("%w: the statement used the whole table %s (%s), as TRUNCATE, LOCK and ALTER do, which cannot be reverted row by row", engine.ErrRefused, l.name, l.mode)
		}
		if l.kind == "S" {
			continue
		}
		if !slices.ContainsFunc(known, func(a engine.Access) bool { return a.Table == l.name }) {
			more.add(reads(l.name))
		}
	}
	return more, nil
}
