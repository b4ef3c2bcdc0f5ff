package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

// root is the one root that these tools reach.
const root = "workspace"

// Tools returns the tools. It panics if one of the literals of this package does
// not freeze, which its test would find.
func Tools() []tool.Tool {
	var out []tool.Tool
	for _, s := range []tool.Spec{readSpec(), listSpec(), writeSpec(), editSpec(), deleteSpec()} {
		s.Provenance = provenance.Source{Kind: provenance.Builtin, Name: "tool/builtin/files"}
		s.Version, s.Confinement, s.Destination = "1", tool.Handles, tool.NoDestination
		t, err := tool.FromSpec(s)
		if err != nil {
			panic(err)
		}
		out = append(out, t)
	}
	return out
}

func need(a perm.Action) []perm.ResourceAccess {
	return []perm.ResourceAccess{{Action: a, Resource: "file://" + root + "/{path}"}}
}

// object is a closed schema of an object.
func object(properties string, required string) json.RawMessage {
	return json.RawMessage(`{"type":"object","additionalProperties":false,"properties":{` + properties + `},"required":[` + required + `]}`)
}

const pathArgument = `"path":{"type":"string","minLength":1,"description":"Path relative to the workspace, such as src/main.go."}`

// with opens the files for one call and decodes its input, which the schema has
// already checked.
func with[In any](run func(context.Context, *handle.Files, In) (tool.Result, error)) tool.Execute {
	return func(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (tool.Result, error) {
		var in In
		if err := canon.Decode(raw, &in); err != nil {
			return tool.Result{}, err
		}
		f, err := handle.Open(tc, root)
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

func deleteSpec() tool.Spec {
	type in struct {
		Path string `json:"path"`
	}
	return tool.Spec{
		Name: "file_delete", Description: "Delete a file, a link or an empty directory of the workspace.", Tags: []string{"files"},
		Input: object(pathArgument, `"path"`), Needs: need(perm.Delete), EffectClass: revert.Reversible, Verify: verifyDelete,
		Execute: with(func(ctx context.Context, f *handle.Files, i in) (tool.Result, error) {
			return tool.Text("deleted"), f.Delete(ctx, i.Path)
		}),
	}
}
