package files

import (
	"context"
	"encoding/base64"
	"fmt"
	"strconv"
	"unicode/utf8"

	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

type readIn struct {
	rootArg
	Path   string `json:"path"`
	Offset int64  `json:"offset"`
	Limit  int64  `json:"limit"`
}

func (i readIn) path() string { return i.Path }

func readSpec() tool.Spec {
	return tool.Spec{
		Name: "file_read", Description: "Read a file, or a part of it.", Tags: []string{"files"},
		Input: object(pathArgument+`,
			"offset":{"type":"integer","minimum":0,"description":"First byte to read; 0 is the beginning."},
			"limit":{"type":"integer","minimum":1,"maximum":33554432,"description":"Most bytes to read; all by default."}`+rootArgument, `"path"`),
		Roles: selectors("offset", "limit"),
		Needs: need(perm.Read), AccessFor: named[readIn](perm.Read), EffectClass: effect.Pure,
		Execute: with(func(ctx context.Context, f *handle.Files, i readIn) (tool.Result, error) {
			part, err := f.Read(ctx, i.Path, i.Offset, i.Limit)
			if err != nil {
				return tool.Result{}, err
			}
			if err := fits(part.Data); err != nil {
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

// maxResult is the default of tool.Limits.MaxOutput.
const maxResult = 32 << 20

// fits refuses content that no result has room for: base64 makes three bytes four,
// and JSON makes a control character six.
func fits(data []byte) error {
	size := base64.StdEncoding.EncodedLen(len(data))
	if utf8.Valid(data) {
		size = len(data)
		for _, c := range data {
			switch {
			case c == '"', c == '\\', c == '\n', c == '\t', c == '\r', c == '\b', c == '\f':
				size++
			case c < ' ':
				size += len(`\u0000`) - 1
			}
		}
	}
	const beside = 4 << 10 // what stands beside the content
	if size <= maxResult-beside {
		return nil
	}
	most := int64(len(data)) * (maxResult - beside) / int64(size)
	return fmt.Errorf("%d bytes take %d in a result, which has room for %d; read a part of it, by offset and a limit of at most %d",
		len(data), size, maxResult, most)
}
