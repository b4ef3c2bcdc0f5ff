package process_test

import (
	"fmt"

	"github.com/remit-dev/remit/ctxperm/process"
)

// What a command is asked for as: the program by its name, and a file of a root as
// just that.
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
