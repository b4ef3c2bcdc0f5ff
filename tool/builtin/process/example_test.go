package process_test

import (
	"encoding/json"
	"fmt"

	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin/process"
)

// A tool that runs one program, sees one folder and changes nothing: it needs no Verify
// and no Revert of its own.
func ExampleProgram() {
	count, err := process.Program(tool.Spec{
		Name: "count_lines", Description: "Count the lines of a file in notes.",
		Input: json.RawMessage(`{"type":"object","properties":{"name":{"type":"string"}},"required":["name"],"additionalProperties":false}`),
		Needs: []perm.ResourceAccess{perm.Access(perm.Execute, "exec://wc"), perm.Access(perm.Read, "file://workspace/notes/**")},
	}, func(in json.RawMessage) (handle.Cmd, error) {
		var args struct{ Name string }
		err := json.Unmarshal(in, &args)
		return handle.Cmd{Argv: []string{"wc", "-l", "--", "notes/" + args.Name}}, err
	})
	fmt.Println(count.Name(), count.Facts().Confinement, count.Class(), err)
	// Output: count_lines sandbox reversible <nil>
}
