package policyfile

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/tool"
)

// maxWarnings limits the policy warnings at a start.
const maxWarnings = 3

// Warn writes the first warnings of a policy to standard error. Tools are those
// of the runtime: the command's own, those of services and of MCP servers.
// Servers can offer further tools later, so only a name that is similar to a
// known one causes a warning.
func Warn(a *cli.App, engine *rego.Engine, paths []string, tools []tool.Tool) {
	if len(paths) == 0 { // the tests check that the workspace policy has no warnings
		return
	}
	all := engine.WarningsFor(Tools(tools), false)
	for i, w := range all {
		if i == maxWarnings {
			_, _ = fmt.Fprintf(a.Err, "remit: %s more of the policy: remit policy check lists them\n", cli.Count(len(all)-i, "warning"))
			return
		}
		_, _ = fmt.Fprintf(a.Err, "remit: warning: policy: %s; %s\n", cli.Printable(cli.WithPlace(w.Text, w.At)), cli.Printable(w.Fix))
	}
}

// Tools describes tools for the checks of a policy.
func Tools(tools []tool.Tool) []rego.Tool {
	out := make([]rego.Tool, 0, len(tools))
	for _, t := range tools {
		one := rego.Tool{Name: t.Name(), Version: t.Spec().Version, Counters: append([]string{}, slices.Sorted(maps.Keys(t.Spec().Counters))...)}
		if t.Spec().ClassOf == nil {
			one.Classes = []string{string(t.Class())}
		}
		var schema struct {
			Type       string
			Properties map[string]json.RawMessage
			Required   []string
		}
		if json.Unmarshal(t.InputSchema(), &schema) == nil && schema.Type == "object" {
			one.Args, one.Types, one.Enums = []string{}, map[string]string{}, map[string][]string{}
			for _, name := range slices.Sorted(maps.Keys(schema.Properties)) {
				one.Args = append(one.Args, name)
				describe(&one, name, schema.Properties[name])
				if !slices.Contains(schema.Required, name) {
					one.Missing = append(one.Missing, name)
				}
			}
		}
		out = append(out, one)
	}
	return out
}

// describe adds what the schema of an argument says of its values. Another form
// of type or enum, such as a list of types, says nothing here.
func describe(to *rego.Tool, arg string, schema json.RawMessage) {
	var of struct{ Type, Enum json.RawMessage }
	var kind string
	var valid []string
	if json.Unmarshal(schema, &of) != nil || json.Unmarshal(of.Type, &kind) != nil {
		return
	}
	to.Types[arg] = kind
	if json.Unmarshal(of.Enum, &valid) == nil {
		to.Enums[arg] = valid
	}
}
