package settings

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/handleaccess"
	"github.com/remit-dev/remit/internal/jsonfile"
	"github.com/remit-dev/remit/internal/suggest"
	"github.com/remit-dev/remit/internal/toolaccess"
	"github.com/remit-dev/remit/tool"
)

// internals are what package tool hides from tool authors.
var internals = toolaccess.Of[tool.Tool, tool.Spec, tool.Registry, tool.RevertContext]()

var contexts = handleaccess.ContextsOf[ctxperm.ToolContext, ctxperm.Permit]()

// Sources is where values come from.
type Sources struct {
	Locked File // of the administrator
	User   File
	Preset File // of the organisation, for what the user does not set
	// Secrets are the names of those that there are; nil: not looked at. A reference to
	// another one fails its check.
	Secrets []string
}

// Value is one setting as it is in force.
type Value struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"` // of a secret the reference; "(hidden)" where it fails its check
	Layer Layer           `json:"layer"`
	By    string          `json:"by,omitempty"` // who wrote the file of its layer
	At    string          `json:"at,omitempty"` // file, line and column
}

// Problem is one check that fails.
type Problem struct {
	Check   string `json:"check"` // required, schema, unknown, locked, secret, twice, own
	Setting string `json:"setting,omitempty"`
	At      string `json:"at,omitempty"` // file, line and column
	Why     string `json:"why"`
	Fix     string `json:"fix,omitempty"`
}

// String is the problem as one line.
func (p Problem) String() string {
	text := p.Why
	if p.Setting != "" {
		text = fmt.Sprintf("setting %q: %s", p.Setting, text)
	}
	if p.At != "" {
		text = p.At + ": " + text
	}
	return text
}

// Status is the result of resolving the settings of one tool. A tool with
// problems is not configured. Warnings do not prevent the configuration.
type Status struct {
	Tool       string    `json:"tool"`
	Version    string    `json:"version,omitempty"`
	Configured bool      `json:"configured"`
	Values     []Value   `json:"values"` // in the order in which the tool declares them
	Problems   []Problem `json:"problems"`
	Warnings   []string  `json:"warnings"`
	Digest     string    `json:"digest,omitempty"` // of the settings in force
}

// Resolve configures every tool that has settings, and returns all tools in the order
// given, each with its status. A tool with a problem comes back not configured. The error
// is about tools that a file names and that are not there; nothing is configured then.
func Resolve(ctx context.Context, from Sources, tools ...tool.Tool) ([]tool.Tool, []Status, error) {
	var known []string
	for _, t := range tools {
		if len(t.Spec().Settings) > 0 {
			known = append(known, t.Name(), t.QualifiedName())
		}
	}
	slices.Sort(known)
	known = slices.Compact(known)
	report := &jsonfile.Report{}
	for _, f := range []File{from.Locked, from.User, from.Preset} {
		f.unknownTools(report, known)
		f.unknownTags(report, tools)
	}
	if err := report.Err(); err != nil {
		return nil, nil, err
	}
	out, all := make([]tool.Tool, 0, len(tools)), make([]Status, 0, len(tools))
	for _, t := range tools {
		configured, status := from.resolve(ctx, t)
		out, all = append(out, configured), append(all, status)
	}
	return out, all, nil
}

func (from Sources) resolve(ctx context.Context, t tool.Tool) (tool.Tool, Status) {
	spec := t.Spec()
	st := Status{Tool: spec.Name, Version: spec.Version, Values: []Value{}, Problems: []Problem{}, Warnings: []string{}}
	if t.IsZero() || len(spec.Settings) == 0 {
		st.Configured = !t.IsZero()
		return t, st
	}
	locked, user, preset := from.Locked.of(t), from.User.of(t), from.Preset.of(t)
	for _, f := range []File{from.Locked, from.User, from.Preset} {
		st.unknown(f.of(t), spec.Settings)
	}
	values := map[string]canon.Value{}
	for _, p := range spec.Settings {
		v, ok := st.choose(p, locked.get(p.Name), user.get(p.Name), preset.get(p.Name), from)
		if !ok {
			continue
		}
		values[p.Name] = v.value
		// A value that fails its check may be a secret in the wrong place.
		text := json.RawMessage(`"(hidden)"`)
		if st.check(t, p, v, from.Secrets) {
			text = v.value.Canonical()
		}
		st.Values = append(st.Values, Value{Name: p.Name, Value: text, Layer: v.layer, By: v.by, At: v.at})
	}
	if len(st.Problems) == 0 {
		return st.finish(ctx, t, values)
	}
	return internals.WithoutSettings(t, st.why()), st
}

// finish has the tool look at all of its settings.
func (st Status) finish(ctx context.Context, t tool.Tool, values map[string]canon.Value) (tool.Tool, Status) {
	text, err := canon.Marshal(values)
	if err == nil {
		var configured tool.Tool
		var warnings []string
		if configured, warnings, err = t.Configure(ctx, text); err == nil {
			st.Configured, st.Digest = true, configured.SettingsDigest()
			st.Warnings = append(st.Warnings, warnings...)
			return configured, st
		}
		st.Warnings = append(st.Warnings, warnings...)
	}
	_, why, _ := strings.Cut(err.Error(), "its own check: ")
	st.Problems = append(st.Problems, Problem{Check: "own", Why: "the tool's own check: " + cmp.Or(why, err.Error())})
	return internals.WithoutSettings(t, st.why()), st
}

func (st Status) why() string {
	if len(st.Problems) == 1 {
		return st.Problems[0].String()
	}
	return fmt.Sprintf("%s, and %d more", st.Problems[0], len(st.Problems)-1)
}

func (e *entry) get(name string) *setting {
	if e == nil {
		return nil
	}
	if s, ok := e.sets[name]; ok {
		return &s
	}
	return nil
}

// unknown are settings that a file sets and that the tool does not have.
func (st *Status) unknown(e *entry, declared tool.Params) {
	if e == nil {
		return
	}
	var names, extra []string
	for _, p := range declared {
		names = append(names, p.Name)
	}
	for name := range e.sets {
		if !slices.Contains(names, name) {
			extra = append(extra, name)
		}
	}
	slices.Sort(extra)
	for _, name := range extra {
		fix := "valid are " + strings.Join(names, ", ")
		if near := suggest.Name(name, names); near != "" {
			fix = fmt.Sprintf("did you mean %q?", near)
		}
		st.Problems = append(st.Problems, Problem{Check: "unknown", Setting: name, At: e.sets[name].at, Why: "the tool has no such setting; " + fix, Fix: fix})
	}
}

// effectiveValue is the value that is in force.
type effectiveValue struct {
	setting
	layer Layer
	by    string
}

// choose takes the strongest layer that has a value.
func (st *Status) choose(p tool.Param, locked, user, preset *setting, from Sources) (effectiveValue, bool) {
	if locked != nil && user != nil && string(locked.value.Canonical()) != string(user.value.Canonical()) {
		st.Problems = append(st.Problems, Problem{
			Check: "locked", Setting: p.Name, At: user.at, Why: lockedBy(from.Locked, locked), Fix: "take it out of " + from.User.name,
		})
	}
	for _, s := range []*setting{locked, user, preset} {
		if s != nil && s.twice != "" {
			st.Problems = append(st.Problems, Problem{
				Check: "twice", Setting: p.Name, At: s.at, Why: "two tags of the tool give it different values, the other one at " + s.twice, Fix: "set it for the tool by its name",
			})
		}
	}
	switch {
	case locked != nil:
		return effectiveValue{*locked, Locked, from.Locked.by}, true
	case user != nil:
		return effectiveValue{*user, User, from.User.by}, true
	case preset != nil:
		return effectiveValue{*preset, Preset, from.Preset.by}, true
	case p.Default != nil:
		v, err := canon.From(p.Default)
		return effectiveValue{setting{value: v}, Default, ""}, err == nil
	case p.Required:
		fix := fmt.Sprintf("set it: {\"schemaVersion\":1,\"tools\":{%q:{%q:%s}}}", st.Tool, p.Name, example(p))
		st.Problems = append(st.Problems, Problem{Check: "required", Setting: p.Name, Why: "it is required, and not set", Fix: fix})
	}
	return effectiveValue{}, false
}

func lockedBy(f File, s *setting) string {
	return fmt.Sprintf("it is locked by %s (%s), and cannot be set to anything else", f.by, s.at)
}

// example is a value as one could be written.
func example(p tool.Param) string {
	if p.Secret {
		return `"secret://name"`
	}
	return map[string]string{"string": `"…"`, "integer": "1", "number": "1", "boolean": "true", "array": "[…]", "object": "{…}"}[p.Type]
}

// check looks at one value by itself.
func (st *Status) check(t tool.Tool, p tool.Param, v effectiveValue, secrets []string) bool {
	if err := internals.CheckSetting(t, p.Name, v.value.Canonical()); err != nil {
		which := "schema"
		if p.Secret {
			which = "secret"
		}
		st.Problems = append(st.Problems, Problem{Check: which, Setting: p.Name, At: v.at, Why: err.Error()})
		return false
	}
	name := strings.TrimPrefix(v.value.Text(), "secret://")
	if p.Secret && secrets != nil && !slices.Contains(secrets, name) {
		have := "there are none"
		if len(secrets) > 0 {
			have = "there is " + strings.Join(slices.Sorted(slices.Values(secrets)), ", ")
		}
		st.Problems = append(st.Problems, Problem{Check: "secret", Setting: p.Name, At: v.at, Why: "there is no secret of this name; " + have})
		return false
	}
	return true
}
