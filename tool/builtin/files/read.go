package files

import (
	"context"
	"encoding/json"
	"strconv"
	"unicode/utf8"

	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/tool"
)

func readSpec() tool.Spec {
	type in struct {
		Path   string `json:"path"`
		Offset int64  `json:"offset"`
		Limit  int64  `json:"limit"`
	}
	return tool.Spec{
		Name: "file_read", Description: "Read a file of the workspace, or a part of it.", Tags: []string{"files"},
		Input: object(pathArgument+`,
			"offset":{"type":"integer","minimum":0,"description":"First byte to read; 0 is the beginning."},
			"limit":{"type":"integer","minimum":1,"maximum":33554432,"description":"Most bytes to read; all by default."}`, `"path"`),
		Needs: need(perm.Read), EffectClass: revert.Pure,
		Execute: with(func(ctx context.Context, f *handle.Files, i in) (tool.Result, error) {
			part, err := f.Read(ctx, i.Path, i.Offset, i.Limit)
			if err != nil {
				return tool.Result{}, err
			}
			meta := map[string]string{"size": strconv.FormatInt(part.Size, 10)}
			if utf8.Valid(part.Data) {
				return tool.Result{Text: string(part.Data), Meta: meta}, nil
			}
			return tool.Result{
				Text:  strconv.Itoa(len(part.Data)) + " bytes that are no text",
				Parts: []tool.Part{{MediaType: "application/octet-stream", Data: part.Data}}, Meta: meta,
			}, nil
		}),
	}
}

// entry is one line of a list.
type entry struct {
	Name string `json:"name"`
	Type string `json:"type"` // file, dir, link, other
	Size int64  `json:"size"` // bytes; of a file
}

func listSpec() tool.Spec {
	type in struct {
		Path string `json:"path"`
	}
	where := func(i in) string {
		if i.Path == "" {
			return "."
		}
		return i.Path
	}
	return tool.Spec{
		Name: "file_list", Description: "List a directory of the workspace; the workspace itself without a path.", Tags: []string{"files"},
		Input:  object(`"path":{"type":"string","description":"Path relative to the workspace; the workspace itself by default."}`, ``),
		Output: json.RawMessage(`{"type":"array"}`),
		Needs:  []perm.ResourceAccess{{Action: perm.List, Resource: "file://" + root + "/**"}}, EffectClass: revert.Pure,
		Access: func(raw json.RawMessage) ([]perm.ResourceAccess, error) {
			var i in
			if err := canon.Decode(raw, &i); err != nil {
				return nil, err
			}
			r, err := perm.FileResource(root, where(i))
			if err != nil {
				return nil, err
			}
			return []perm.ResourceAccess{{Action: perm.List, Resource: r.String()}}, nil
		},
		Execute: with(func(ctx context.Context, f *handle.Files, i in) (tool.Result, error) {
			found, err := f.List(ctx, where(i))
			if err != nil {
				return tool.Result{}, err
			}
			list := make([]entry, 0, len(found))
			for _, e := range found {
				line := entry{Name: e.Name, Type: e.Type}
				if e.Type == "file" {
					line.Size = e.Size
				}
				list = append(list, line)
			}
			data, err := canon.Marshal(list)
			return tool.Result{JSON: data}, err
		}),
	}
}
