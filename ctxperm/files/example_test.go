package files_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
)

// A tool receives its ToolContext and passes it to the handle.
func Example() {
	rename := func(ctx context.Context, tc ctxperm.ToolContext) error {
		f, err := files.Open(tc, "workspace")
		if err != nil {
			return err
		}
		err = f.Edit(ctx, "config.yaml", "port: 80", "port: 8080", false)
		if errors.Is(err, fs.ErrNotExist) {
			return f.Write(ctx, "config.yaml", []byte("port: 8080\n"), files.WriteOptions{})
		}
		return err
	}
	// Without a call there is no authority.
	fmt.Println(rename(context.Background(), ctxperm.ToolContext{}))
	// Output: open files: the call has ended; its context and permits reach nothing any more
}
