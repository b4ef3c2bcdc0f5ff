package process_test

import (
	"fmt"

	"github.com/remit-dev/remit/ctxperm/process"
)

// A command needs execute on its program: by name, by absolute path, or as a
// file of a root.
func ExampleCmd_Access() {
	for _, argv := range [][]string{{"git", "status"}, {"/usr/bin/make"}, {"./build.sh", "all"}} {
		all, err := process.Cmd{Argv: argv, Root: "workspace", Dir: "src"}.Access()
		fmt.Println(all[0], all[0].Argv.List(), err)
	}
	// Output:
	// execute exec://git [git status] <nil>
	// execute exec:///usr/bin/make [/usr/bin/make] <nil>
	// execute file://workspace/src/build.sh [./build.sh all] <nil>
}
