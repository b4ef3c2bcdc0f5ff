package database

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/database"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

// Tools returns the tools. It panics if one of the literals of this package does
// not freeze, which its test would find.
func Tools() []tool.Tool {
	var out []tool.Tool
	for _, s := range []tool.Spec{querySpec(), executeSpec()} {
		s.Provenance = provenance.Source{Kind: provenance.Builtin, Name: "tool/builtin/database"} // policies read the name: it stays
		s.Version, s.Confinement, s.Destination, s.Tags = "1", tool.Handles, tool.Configured, []string{"database"}
		t, err := tool.FromSpec(s)
		if err == nil {
			t, err = t.Graded(grades)
		}
		if err != nil {
			panic(err)
		}
		out = append(out, t)
	}
	return out
}

// object is a closed schema of an object.
func object(properties, required string) json.RawMessage {
	return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` + properties + `},"required":[` + required + `]}`)
}

const (
	value      = `{"type":["null","boolean","number","string","object"],"properties":{"base64":{"type":"string","contentEncoding":"base64"}},"required":["base64"],"additionalProperties":false}`
	statement  = `"database":{"type":"string","minLength":1,"description":"Name of the database."},"sql":{"type":"string","minLength":1,"maxLength":100000,"description":"One statement; values belong into params, as ? or :name for SQLite and $1 for PostgreSQL."},"params":{"type":["array","object"],"items":` + value + `,"additionalProperties":` + value + `,"description":"Values by position or by name; bytes as {\"base64\":\"…\"}."}`
	rowWindow  = `,"max_rows":{"type":"integer","minimum":1,"maximum":1000,"description":"Rows of a page; 100 by default."}`
	pageNumber = `,"page":{"type":"integer","minimum":1,"maximum":100000,"description":"Which page, from 1. Pages are of one order only if the statement has ORDER BY."}`
)

// bound is the most that a call may ask for. It allows nothing by itself: the
// session's grant and the policy decide each table and kind of statement.
func bound(actions ...perm.Action) []perm.ResourceAccess {
	var out []perm.ResourceAccess
	for _, a := range actions {
		out = append(out, perm.Access(a, "db://{database}/*"))
	}
	return append(out, perm.Access(perm.List, "db://*"))
}

func querySpec() tool.Spec {
	return tool.Spec{
		Name:        "sql_query",
		Description: "Run one SQL statement that only reads. The answer is one page: columns, rows and has_more.",
		Input:       object(statement+rowWindow+pageNumber, `"database","sql"`),
		Roles:       provenance.Roles{"/sql": provenance.Selector, "/params": provenance.Selector, "/max_rows": provenance.Selector, "/page": provenance.Selector},
		Needs:       bound(perm.Read), EffectClass: effect.Pure,
		Execute: with(func(ctx context.Context, db *handle.Database, in input) (tool.Result, error) {
			s, err := in.statement()
			if err != nil {
				return tool.Result{}, err
			}
			r, err := db.Query(ctx, s, handle.Page{Page: in.Page, Rows: in.MaxRows})
			if err != nil {
				return tool.Result{}, err
			}
			return rows(r, nil)
		}),
	}
}

func executeSpec() tool.Spec {
	return tool.Spec{
		Name:        "sql_execute",
		Description: "Run one SQL statement that changes rows: INSERT, UPDATE or DELETE, with RETURNING where rows are wanted back. It can be reverted row by row; what changes the schema is refused.",
		Input:       object(statement+rowWindow, `"database","sql"`),
		Roles:       provenance.Roles{"/max_rows": provenance.Selector},
		Needs:       bound(perm.Read, perm.Write), EffectClass: effect.Reversible, Verify: verify.Changes,
		Execute: with(func(ctx context.Context, db *handle.Database, in input) (tool.Result, error) {
			s, err := in.statement()
			if err != nil {
				return tool.Result{}, err
			}
			r, err := db.Execute(ctx, s, handle.Page{Rows: in.MaxRows})
			if err != nil {
				return tool.Result{}, err
			}
			return rows(r, &r.Affected)
		}),
	}
}

type input struct {
	Database string          `json:"database"`
	SQL      string          `json:"sql"`
	Params   json.RawMessage `json:"params"`
	MaxRows  int             `json:"max_rows"`
	Page     int             `json:"page"`
}

// with opens the database for one call and decodes its input, which the schema has
// already checked.
func with(run func(context.Context, *handle.Database, input) (tool.Result, error)) tool.Execute {
	return func(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (tool.Result, error) {
		var in input
		if err := canon.Decode(raw, &in); err != nil {
			return tool.Result{}, err
		}
		db, err := handle.Open(ctx, tc, in.Database)
		if err != nil {
			return tool.Result{}, err
		}
		return run(ctx, db, in)
	}
}

func (i input) statement() (handle.Statement, error) {
	s := handle.Statement{SQL: i.SQL}
	if len(i.Params) == 0 {
		return s, nil
	}
	if i.Params[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(i.Params, &list); err != nil {
			return s, err
		}
		for n, raw := range list {
			v, err := parameter(raw)
			if err != nil {
				return s, fmt.Errorf("argument \"params\", value %d: %w", n+1, err)
			}
			s.Args = append(s.Args, v)
		}
		return s, nil
	}
	var named map[string]json.RawMessage
	if err := json.Unmarshal(i.Params, &named); err != nil {
		return s, err
	}
	s.Named = map[string]any{}
	for name, raw := range named {
		v, err := parameter(raw)
		if err != nil {
			return s, fmt.Errorf("argument \"params\", value %q: %w", name, err)
		}
		s.Named[name] = v
	}
	return s, nil
}

// parameter reads a value. A number without a fraction is an integer.
func parameter(raw json.RawMessage) (any, error) {
	text := string(raw)
	switch {
	case text == "null":
		return nil, nil
	case text == "true", text == "false":
		return text == "true", nil
	case text[0] == '"':
		var s string
		return s, json.Unmarshal(raw, &s)
	case text[0] == '{':
		var b struct {
			Base64 string `json:"base64"`
		}
		if err := json.Unmarshal(raw, &b); err != nil {
			return nil, err
		}
		data, err := base64.StdEncoding.DecodeString(b.Base64)
		if err != nil {
			return nil, fmt.Errorf("the value of base64 is not base64: %w", err)
		}
		return append([]byte{}, data...), nil
	case !strings.ContainsAny(text, ".eE"):
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("an integer of more than 64 bits; give it as a string")
		}
		return n, nil
	default:
		return strconv.ParseFloat(text, 64)
	}
}

// rows is a page as the model sees it.
func rows(r handle.Result, affected *int64) (tool.Result, error) {
	out := struct {
		Affected *int64   `json:"affected,omitempty"`
		Columns  []string `json:"columns"`
		Rows     [][]any  `json:"rows"`
		HasMore  bool     `json:"has_more"`
	}{affected, append([]string{}, r.Columns...), [][]any{}, r.HasMore}
	for _, row := range r.Rows {
		line := make([]any, len(row))
		for i, v := range row {
			line[i] = shown(v)
		}
		out.Rows = append(out.Rows, line)
	}
	data, err := canon.Marshal(out)
	return tool.Result{JSON: data}, err
}

// shown is a value of a row as JSON has it. Bytes, and text that is no text, are
// base64.
func shown(v any) any {
	switch v := v.(type) {
	case []byte:
		return map[string]string{"base64": base64.StdEncoding.EncodeToString(v)}
	case string:
		if !utf8.ValidString(v) {
			return map[string]string{"base64": base64.StdEncoding.EncodeToString([]byte(v))}
		}
		return v
	case float64:
		return handle.JSONFloat(v)
	default:
		return v
	}
}
