package policy

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/perm"
)

// SampleInput is a command with an input document that has every required
// member.
const SampleInput = `remit policy eval --input - <<'END'
{
  "purpose": "run",
  "time": "2026-01-02T03:04:05Z",
  "principal": {"id": "agent", "kind": "agent", "roles": []},
  "session": {"id": "s_1", "labels": [], "tools": {}, "recent": []},
  "txn": {"id": "t_1", "calls": 0, "depth": 0},
  "tool": {
    "name": "file_write", "version": "1", "tags": [], "digest": "", "provenance": "builtin", "can_verify": true,
    "can_revert": true, "confinement": "handles", "coverage": "confined", "destination": "none", "grade": "ungraded",
    "idempotent": false, "risk": "undeclared", "approval": false
  },
  "call": {
    "id": "c_1", "args": {"path": "notes/a.txt", "content": "hi"}, "effect_class": "reversible", "declared": true,
    "batch": {"index": 0, "count": 1}
  },
  "access": {
    "action": "write", "dynamic": false,
    "resource": {
      "kind": "file", "text": "file://workspace/notes/a.txt", "root": "workspace", "path": "notes/a.txt",
      "segments": ["notes", "a.txt"], "name": "a.txt", "ext": ".txt"
    }
  }
}
END`

func schemaCommand(a *cli.App) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "schema", Short: "Print the JSON schema of the policy input",
		Long: "Prints the JSON schema of the input that rules read and that remit policy eval takes. Editors can use it to complete\n" +
			"fields.",
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if asJSON {
				a.WriteJSON(json.RawMessage(perm.InputSchema()))
				return nil
			}
			_, err := a.Out.Write(perm.InputSchema())
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "write the schema on one line")
	return cmd
}

// parseRequest parses an input document. It can omit members that the input of
// a call always has, but not the accesses: a decision about nothing would be
// meaningless.
func parseRequest(text []byte) (r perm.Request, err error) {
	v, err := canon.Parse(text, canon.DefaultLimits())
	if err != nil {
		return r, err
	}
	s, err := requestSchema()
	if err != nil {
		return r, err
	}
	if err := s.ValidateAs("the document", "member", v); err != nil {
		return r, err
	}
	return r, jsonWords(v.Decode(&r))
}

// jsonWords returns an error without the Go type that a value does not fit. The
// schema lets two of them pass: an invalid time and a huge number.
func jsonWords(err error) error {
	if err == nil {
		return nil
	}
	text := err.Error()
	if before, _, ok := strings.Cut(text, ": does not fit, want a value for "); ok {
		return errors.New(before + `: want a time such as "2026-01-02T03:04:05Z"`)
	}
	if before, _, ok := strings.Cut(text, ": a number out of the range of "); ok {
		return errors.New(before + ": the number is too large")
	}
	return err
}

// requestSchema returns the schema of the input, with fewer required members.
func requestSchema() (*schema.Schema, error) {
	var doc map[string]any
	if err := json.Unmarshal(perm.InputSchema(), &doc); err != nil {
		return nil, err
	}
	delete(doc, "$schema") // newer drafts give it the same meaning
	delete(doc, "$id")
	relax(doc)
	doc["required"] = []string{"purpose", "tool", "access"}
	if parts, ok := doc["properties"].(map[string]any); ok {
		mustHave(parts["tool"], "name")
		mustHave(parts["access"], "action", "resource")
	}
	text, err := json.Marshal(doc)
	if err != nil {
		return nil, err
	}
	return schema.Compile(text)
}

func relax(node any) {
	switch n := node.(type) {
	case map[string]any:
		if _, names := n["required"].([]any); names {
			delete(n, "required")
		}
		for _, inside := range n {
			relax(inside)
		}
	case []any:
		for _, inside := range n {
			relax(inside)
		}
	}
}

func mustHave(part any, names ...string) {
	if p, ok := part.(map[string]any); ok {
		p["required"] = names
	}
}
