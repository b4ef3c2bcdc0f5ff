package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strconv"

	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/provenance"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

type writeIn struct {
	rootArg
	Path     string `json:"path"`
	Content  string `json:"content"`
	Mode     string `json:"mode"`
	IfAbsent bool   `json:"if_absent"`
	Parents  bool   `json:"parents"`
}

func (i writeIn) path() string { return i.Path }

// above are the directories that a call may make, which are asked for when they are
// missing.
func (i writeIn) above() (all []access, _ error) {
	for at, c := range i.Path {
		if i.Parents && c == '/' {
			all = append(all, access{perm.Write, "path", i.Path[:at]})
		}
	}
	return all, nil
}

func writeSpec() tool.Spec {
	return tool.Spec{
		Name: "file_write", Description: "Write a file whole, creating it where it is not there.", Tags: []string{"files"},
		Input: object(pathArgument+`,
			"content":{"type":"string","description":"The whole new content."},
			"mode":{"type":"string","pattern":"^0?[4-7][0-7]{2}$","description":"Permission bits in octal, such as 0644, readable for the owner; kept by default."},
			"if_absent":{"type":"boolean","description":"Fail if the file exists."},
			"parents":{"type":"boolean","description":"Make the directories above it that are missing."}`+rootArgument, `"path","content"`),
		// The flags do nothing to a file that the path does not name.
		Roles: provenance.Roles{"/content": provenance.Payload, "/if_absent": provenance.Payload, "/parents": provenance.Payload},
		Needs: append(need(perm.Write), anywhere(perm.Write)...), AccessFor: named[writeIn](perm.Write), Bound: exact(writeIn.above),
		EffectClass: effect.Reversible, Verify: verifyWrite,
		Execute: with(func(ctx context.Context, f *handle.Files, i writeIn) (tool.Result, error) {
			o := handle.WriteOptions{IfAbsent: i.IfAbsent, MakeParents: i.Parents}
			if i.Mode != "" {
				bits, err := strconv.ParseUint(i.Mode, 8, 12)
				if err != nil {
					return tool.Result{}, err
				}
				o.Perm = fs.FileMode(bits)
			}
			err := f.Write(ctx, i.Path, []byte(i.Content), o)
			if errors.Is(err, fs.ErrNotExist) && !i.Parents {
				err = fmt.Errorf("%w; dir_create makes it, and so does \"parents\": true", err)
			}
			return tool.Text(fmt.Sprintf("wrote %d bytes", len(i.Content))), err
		}),
	}
}

type editIn struct {
	rootArg
	Path string `json:"path"`
	Old  string `json:"old"`
	New  string `json:"new"`
	All  bool   `json:"all"`
}

func (i editIn) path() string { return i.Path }

func editSpec() tool.Spec {
	return tool.Spec{
		Name: "file_edit", Description: "Replace a text in a file. The text must occur exactly once unless all is true.", Tags: []string{"files"},
		Input: object(pathArgument+`,
			"old":{"type":"string","minLength":1,"description":"The text to replace."},
			"new":{"type":"string","description":"What to put in its place."},
			"all":{"type":"boolean","description":"Replace every occurrence."}`+rootArgument, `"path","old","new"`),
		// The old text can choose no more than the content of file_write can.
		Roles: provenance.Roles{"/old": provenance.Payload, "/new": provenance.Payload, "/all": provenance.Payload},
		Needs: need(perm.Read, perm.Write), AccessFor: named[editIn](perm.Read, perm.Write),
		EffectClass: effect.Reversible, Verify: verifyEdit,
		Execute: with(func(ctx context.Context, f *handle.Files, i editIn) (tool.Result, error) {
			return tool.Text("edited"), f.Edit(ctx, i.Path, i.Old, i.New, i.All)
		}),
	}
}
