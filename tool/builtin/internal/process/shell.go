package process

import (
	"encoding/json"
	"os"
	"strings"
	"sync"
	"time"

	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/sandbox"
	"github.com/remit-dev/remit/tool"
)

type shellIn struct {
	Script  string `json:"script"`
	Shell   string `json:"shell"`
	Cwd     string `json:"cwd"`
	Timeout int    `json:"timeout_s"`
}

// shell runs a script if its call names none.
var shell = sync.OnceValue(func() string { return shellOf(sandbox.Path) })

func shellSpec(shell string) tool.Spec {
	return tool.Spec{
		Name:        "shell_run",
		Description: "Run a script of " + shell + " in the workspace, without network. What it changes can be reverted.",
		Input: object(`"script":{"type":"string","minLength":1,"description":"The script, as `+shell+` -c takes it."}`+
			`,"shell":{"enum":["bash","sh"],"description":"The shell that runs it; `+shell+` by default."}`+
			cwdArgument+timeoutArgument, `"script"`),
		Output:      outputSchema,
		ParseScript: scriptOf,
		Hints:       tool.Hints{Timeout: longest + time.Minute},
	}
}

// shellCmd is what a call runs that may name another shell.
func shellCmd(shell string) func(json.RawMessage) (handle.Cmd, error) {
	return func(raw json.RawMessage) (handle.Cmd, error) {
		in := shellIn{Shell: shell}
		if err := canon.Decode(raw, &in); err != nil {
			return handle.Cmd{}, err
		}
		if err := checkCwd(in.Cwd); err != nil {
			return handle.Cmd{}, err
		}
		return handle.Cmd{Argv: []string{in.Shell, "-c", in.Script}, Root: workspace, Dir: in.Cwd, Timeout: seconds(in.Timeout)}, nil
	}
}

// shellOf returns bash if a folder of a path has it, else sh.
func shellOf(path string) string {
	for dir := range strings.SplitSeq(path, ":") {
		if is, err := os.Stat(dir + "/bash"); err == nil && is.Mode().IsRegular() && is.Mode().Perm()&0o111 != 0 {
			return "bash"
		}
	}
	return "sh"
}
