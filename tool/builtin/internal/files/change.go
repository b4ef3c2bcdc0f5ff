package files

import (
	"context"
	"fmt"
	"strings"

	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

type deleteIn struct {
	rootArg
	Path      string `json:"path"`
	Recursive bool   `json:"recursive"`
}

func deleteSpec() tool.Spec {
	return tool.Spec{
		Name: "file_delete", Tags: []string{"files"},
		Description: "Delete a file, a link or an empty directory; with recursive a directory with all that is in it.",
		Input:       object(pathArgument+`,"recursive":{"type":"boolean","description":"Delete what is in the directory too."}`+rootArgument, `"path"`),
		Needs:       anywhere(perm.Delete, perm.List),
		AccessFor:   exact(func(i deleteIn) ([]access, error) { return []access{{perm.Delete, "path", i.Path}}, nil }),
		EffectClass: effect.Reversible, Verify: verifyDelete,
		Execute: with(func(ctx context.Context, f *handle.Files, i deleteIn) (tool.Result, error) {
			if i.Recursive {
				return tool.Text("deleted"), f.DeleteAll(ctx, i.Path)
			}
			return tool.Text("deleted"), f.Delete(ctx, i.Path)
		}),
	}
}

type moveInput struct {
	rootArg
	From string `json:"from"`
	To   string `json:"to"`
}

func (i moveInput) apart() error {
	if i.From == i.To || strings.HasPrefix(i.To, i.From+"/") {
		return fmt.Errorf("argument \"to\": %q is %q itself, or lies in it; valid is a free path outside it", i.To, i.From)
	}
	return nil
}

const moveArguments = `"from":{"type":"string","minLength":1,"description":"Path relative to the root."},
	"to":{"type":"string","minLength":1,"description":"The new path, which must be free; its directory must exist."}` + rootArgument

func moveSpec() tool.Spec {
	return tool.Spec{
		Name: "file_move", Description: "Move or rename a file, a link, or a directory with all that is in it.", Tags: []string{"files"},
		Input: object(moveArguments, `"from","to"`),
		Needs: anywhere(perm.Read, perm.Delete, perm.Write, perm.List),
		AccessFor: exact(func(i moveInput) ([]access, error) {
			return []access{{perm.Read, "from", i.From}, {perm.Delete, "from", i.From}, {perm.Write, "to", i.To}}, i.apart()
		}),
		EffectClass: effect.Reversible, Verify: verifyMove,
		Execute: with(func(ctx context.Context, f *handle.Files, i moveInput) (tool.Result, error) {
			return tool.Text("moved"), f.Move(ctx, i.From, i.To)
		}),
	}
}

func copySpec() tool.Spec {
	return tool.Spec{
		Name: "file_copy", Description: "Copy a file, a link, or a directory with all that is in it.", Tags: []string{"files"},
		Input: object(moveArguments, `"from","to"`),
		Needs: anywhere(perm.Read, perm.Write, perm.List),
		AccessFor: exact(func(i moveInput) ([]access, error) {
			return []access{{perm.Read, "from", i.From}, {perm.Write, "to", i.To}}, i.apart()
		}),
		EffectClass: effect.Reversible, Verify: verifyCopy,
		Execute: with(func(ctx context.Context, f *handle.Files, i moveInput) (tool.Result, error) {
			return tool.Text("copied"), f.Copy(ctx, i.From, i.To)
		}),
	}
}

type mkdirIn struct {
	rootArg
	Path string `json:"path"`
}

func mkdirSpec() tool.Spec {
	return tool.Spec{
		Name: "dir_create", Description: "Make a directory, and those above it that are missing. One that exists stays as it is.", Tags: []string{"files"},
		Input: object(pathArgument+rootArgument, `"path"`), Needs: anywhere(perm.Write),
		AccessFor:   exact(func(i mkdirIn) ([]access, error) { return []access{{perm.Write, "path", i.Path}}, nil }),
		EffectClass: effect.Reversible, Verify: verifyMkdir,
		Execute: with(func(ctx context.Context, f *handle.Files, i mkdirIn) (tool.Result, error) {
			return tool.Text("the directory is there"), f.MkdirAll(ctx, i.Path, 0)
		}),
	}
}
