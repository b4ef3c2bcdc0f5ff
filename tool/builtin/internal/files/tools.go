package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/tool"
)

// workspace is the root that a call means which names none.
const workspace = "workspace"

// rootArg is the argument that names a root.
type rootArg struct {
	Root string `json:"root"`
}

func (w rootArg) root() string {
	if w.Root == "" {
		return workspace
	}
	return w.Root
}

// Tools returns the tools. It panics if one of the literals of this package does
// not freeze, which its test would find.
func Tools() []tool.Tool {
	var out []tool.Tool
	for _, s := range []tool.Spec{
		readSpec(), listSpec(), searchSpec(), writeSpec(), editSpec(), deleteSpec(), moveSpec(), copySpec(), mkdirSpec(),
	} {
		s.Provenance = provenance.Source{Kind: provenance.Builtin, Name: "tool/builtin/files"} // policies read the name: it stays
		s.Version, s.Confinement, s.Destination = "1", tool.Handles, tool.NoDestination
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

// need is the access to the path that a call names, below the root that it names.
func need(actions ...perm.Action) []perm.ResourceAccess {
	var out []perm.ResourceAccess
	for _, a := range actions {
		out = append(out, perm.ResourceAccess{Action: a, Resource: "file://{root}/{path}"})
	}
	return out
}

// anywhere bounds what a call may ask for that acts on more than it names. It
// allows nothing by itself: the session's grant and the policy decide each access.
func anywhere(actions ...perm.Action) []perm.ResourceAccess {
	var out []perm.ResourceAccess
	for _, a := range actions {
		out = append(out, perm.ResourceAccess{Action: a, Resource: "file://*/**"})
	}
	return out
}

// selectors are the roles of arguments that choose what is read of what a call
// names.
func selectors(names ...string) provenance.Roles {
	roles := provenance.Roles{}
	for _, name := range names {
		roles["/"+name] = provenance.Selector
	}
	return roles
}

// exact returns the accesses of one call. It rejects invalid arguments before
// the runtime asks an approver.
func exact[In interface{ root() string }](paths func(In) ([]access, error)) func(json.RawMessage) ([]perm.ResourceAccess, error) {
	return func(raw json.RawMessage) ([]perm.ResourceAccess, error) {
		var in In
		if err := canon.Decode(raw, &in); err != nil {
			return nil, err
		}
		all, err := paths(in)
		if err != nil {
			return nil, err
		}
		var out []perm.ResourceAccess
		for _, a := range all {
			r, err := perm.FileResource(in.root(), a.path)
			if errors.Is(err, perm.ErrOutside) {
				return nil, fmt.Errorf("argument %q: the path leaves its root; valid is a relative path inside it, without \"..\"", a.argument)
			}
			if a.path != "." || a.action != perm.List {
				if bad := handle.CheckPath(a.path); bad != nil {
					return nil, fmt.Errorf("argument %q: %s", a.argument, strings.TrimPrefix(bad.Error(), ctxperm.ErrInvalid.Error()+": "))
				}
			}
			if err != nil {
				return nil, fmt.Errorf("argument %q: %w", a.argument, err)
			}
			out = append(out, perm.ResourceAccess{Action: a.action, Resource: r.String()})
		}
		return out, nil
	}
}

// named makes the accesses to the path of a call that names no root: with a root
// its needs are exact already.
func named[In interface {
	root() string
	path() string
}](actions ...perm.Action) func(json.RawMessage) ([]perm.ResourceAccess, error) {
	all := exact(func(in In) (out []access, _ error) {
		for _, a := range actions {
			out = append(out, access{a, "path", in.path()})
		}
		return out, nil
	})
	return func(raw json.RawMessage) ([]perm.ResourceAccess, error) {
		var in struct {
			Root json.RawMessage `json:"root"`
		}
		out, err := all(raw)
		if err == nil {
			err = json.Unmarshal(raw, &in)
		}
		if in.Root != nil {
			out = nil
		}
		return out, err
	}
}

type access struct {
	action   perm.Action
	argument string
	path     string
}

// object is a closed schema of an object.
func object(properties string, required string) json.RawMessage {
	return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` + properties + `},"required":[` + required + `]}`)
}

const (
	pathArgument = `"path":{"type":"string","minLength":1,"description":"Path relative to the root, such as src/main.go."}`
	rootArgument = `,"root":{"type":"string","minLength":1,"description":"Name of the root; workspace by default."}`
	pageArgument = `,"page":{"type":"integer","minimum":1,"maximum":100000,"description":"Which page, from 1."}`
)

// with opens the files for one call and decodes its input, which the schema has
// already checked.
func with[In interface{ root() string }](run func(context.Context, *handle.Files, In) (tool.Result, error)) tool.Execute {
	return func(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (tool.Result, error) {
		var in In
		if err := canon.Decode(raw, &in); err != nil {
			return tool.Result{}, err
		}
		f, err := handle.Open(tc, in.root())
		if err != nil {
			return tool.Result{}, err
		}
		out, err := run(ctx, f, in)
		return out, plain(err)
	}
}

// plain says in a model's words what the operating system means.
func plain(err error) error {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("there is no such file or directory: %w", err)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("it exists already: %w", err)
	default:
		return err
	}
}
