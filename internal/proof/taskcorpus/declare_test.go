package taskcorpus_test

import (
	"context"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// declaration is what a tool declares about its values. The keys are JSON
// pointers, with "*" for each element. A field that is not named has the trust of
// the whole result.
type declaration struct {
	whole  provenance.Trust
	roles  provenance.Roles
	fields map[string]provenance.Trust
}

// host owns the tools. They act on the services of the current run.
type host struct {
	now      *services
	tools    []tool.Tool
	declared map[string]declaration // by tool
}

// shape is the part of a declaration that is not about single values.
type shape struct {
	needs   string // accesses, separated by commas
	class   effect.Class
	to      tool.Destination
	content provenance.Content
	risk    perm.Risk
	same    bool // repeating a call has no further effect
	exact   func(json.RawMessage) ([]perm.ResourceAccess, error)
}

// The kinds of results. Receipts hold only what the service makes: an ID and a
// state.
var (
	receipt  = provenance.Content{Trust: provenance.Trusted, Confidentiality: provenance.Public}
	own      = provenance.Content{Trust: provenance.Trusted, Confidentiality: provenance.Private}
	foreign  = provenance.Content{Trust: provenance.Untrusted, Confidentiality: provenance.Private}
	everyone = provenance.Content{Trust: provenance.Untrusted, Confidentiality: provenance.Public}
)

// reads is the shape of a tool that reads from a service of the host.
func reads(needs string, content provenance.Content) shape {
	return shape{needs: needs, class: effect.Pure, to: tool.Configured, content: content, risk: perm.RiskLow, same: true}
}

// changes is the shape of a tool with effects.
func changes(class effect.Class, needs string, to tool.Destination, risk perm.Risk) shape {
	return shape{needs: needs, class: class, to: to, content: receipt, risk: risk}
}

// define adds a tool. Tags of the types declare its values: role:"content" for
// an argument, trust:"trusted" or trust:"untrusted" for a field of the result.
// undo reverts a call from its input and output.
func define[In, Out any](h *host, name, description string, s shape, run func(*services, In) (Out, error), undo ...func(*services, In, Out) error) {
	var needs []perm.ResourceAccess
	for text := range strings.SplitSeq(s.needs, ",") {
		access, err := perm.ParseAccess(strings.TrimSpace(text))
		must(err)
		needs = append(needs, access)
	}
	execute := func(_ context.Context, _ ctxperm.ToolContext, in In) (Out, error) {
		out, err := run(h.now, in)
		return out, tool.NoEffect(err)
	}
	d := declaration{whole: s.content.Trust, roles: rolesOf(reflect.TypeFor[In](), ""), fields: fieldsOf(reflect.TypeFor[Out](), "")}
	opts := []tool.Option{tool.Effect(s.class), func(spec *tool.Spec) {
		spec.Destination, spec.OutputContent, spec.AccessFor = s.to, &s.content, s.exact
		spec.Hints = tool.Hints{Risk: s.risk, Idempotent: s.same, Concurrent: s.class == effect.Pure}
		spec.OutputContent.Fields, spec.Roles = d.fields, d.roles
	}}
	if len(undo) > 0 {
		opts = append(opts, tool.RevertWith("1", func(_ context.Context, rc tool.RevertContext) error {
			var in In
			var out Out
			if err := json.Unmarshal(rc.Input, &in); err != nil {
				return err
			}
			if err := json.Unmarshal(rc.Output, &out); err != nil {
				return err
			}
			return undo[0](h.now, in, out)
		}))
	}
	made, err := tool.CreateTyped(name, description, needs, execute, opts...)
	must(err)
	h.tools, h.declared[name] = append(h.tools, made), d
}

func must(err error) {
	if err != nil {
		panic(err)
	}
}

// rolesOf returns the roles of the arguments in a type, by their JSON pointers.
func rolesOf(t reflect.Type, at string) provenance.Roles {
	found := provenance.Roles{}
	walkTags(t, at, "role", func(pointer, tag string) { found[pointer] = provenance.Role(tag) })
	return found
}

func fieldsOf(t reflect.Type, at string) map[string]provenance.Trust {
	found := map[string]provenance.Trust{}
	walkTags(t, at, "trust", func(pointer, tag string) { found[pointer] = provenance.Trust(tag) })
	return found
}

// walkTags calls found for each field of a type that has the tag. The elements of a
// list have the tag of the list.
func walkTags(t reflect.Type, at, key string, found func(pointer, tag string)) {
	switch t.Kind() {
	case reflect.Slice:
		walkTags(t.Elem(), at+"/*", key, found)
	case reflect.Struct:
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			pointer := at + "/" + name
			tag, ok := f.Tag.Lookup(key)
			if !ok {
				walkTags(f.Type, pointer, key, found)
				continue
			}
			if f.Type.Kind() == reflect.Slice {
				pointer += "/*"
			}
			found(pointer, tag)
		}
	default:
	}
}

// trusts reports whether a text is in a part of a result that counts as trusted.
func (d declaration) trusts(v any, text string) bool { return d.trustsAt(v, "", d.whole, text) }

// trustsAt is trusts for the part at a pointer. Above is the trust of what holds it.
func (d declaration) trustsAt(v any, pointer string, above provenance.Trust, text string) bool {
	if own, ok := d.fields[pointer]; ok {
		above = own
	}
	switch v := v.(type) {
	case string:
		return above == provenance.Trusted && strings.Contains(v, text)
	case []any:
		return slices.ContainsFunc(v, func(v any) bool { return d.trustsAt(v, pointer+"/*", above, text) })
	case map[string]any:
		return slices.ContainsFunc(slices.Sorted(maps.Keys(v)), func(key string) bool { return d.trustsAt(v[key], pointer+"/"+key, above, text) })
	}
	return false
}
