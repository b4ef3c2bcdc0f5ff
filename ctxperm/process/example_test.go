package process_test

import (
	"fmt"

	"github.com/remit-dev/remit/ctxperm/process"
)

// What a command is asked for as: the program by its name, and a file of a root as
// just that.
func ExampleAccess() {
	for _, argv := range [][]string{{"git", "status"}, {"/usr/bin/make"}, {"./build.sh", "all"}} {
		a, err := process.Access(argv, "workspace", "src")
		fmt.Println(a, a.Argv.List(), err)
	}
	// Output:
	// execute exec://git [git status] <nil>
	// execute exec:///usr/bin/make [/usr/bin/make] <nil>
	// execute file://workspace/src/build.sh [./build.sh all] <nil>
}
