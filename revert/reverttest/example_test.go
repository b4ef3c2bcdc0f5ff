package reverttest_test

import (
	"context"
	"fmt"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/revert/reverttest"
	"github.com/remit-dev/remit/tool"
)

// A tool that uses the handle for files needs an environment of files, and
// inputs.
func Example() {
	needs := []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/VERSION")}
	release, err := tool.CreateWith("release", "Set the version.", needs,
		func(ctx context.Context, tc ctxperm.ToolContext, version string) (string, error) {
			f, err := files.Open(tc, "workspace")
			if err != nil {
				return "", err
			}
			return "set", f.Write(ctx, "VERSION", []byte(version), files.WriteOptions{})
		}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := reverttest.Grade(release, reverttest.Config{
		NewEnv: func(*reverttest.Wire) (reverttest.TestEnv, error) {
			return reverttest.TestEnv{Files: map[string]string{"VERSION": "1.0"}}, nil
		},
		Inputs: []any{"1.1"},
		Runs:   50,
	})
	fmt.Println(r.Grade, r.Runs, err)
	// Output: crash_undoable 50 <nil>
}
