package process

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	handle "github.com/remit-dev/remit/ctxperm/process"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

type runIn struct {
	Argv    []string          `json:"argv"`
	Cwd     string            `json:"cwd"`
	Stdin   string            `json:"stdin"`
	Env     map[string]string `json:"env"`
	Timeout int               `json:"timeout_s"`
}

func runSpec() tool.Spec {
	return tool.Spec{
		Name:        "process_run",
		Description: "Run a program in the workspace, without a shell and without network. What it changes can be reverted.",
		Input: object(`"argv":{"type":"array","minItems":1,"maxItems":4096,"items":{"type":"string"},"description":"The program and its arguments, such as [\"ls\", \"-l\"]."}`+cwdArgument+
			`,"stdin":{"type":"string","description":"What it reads."},"env":{"type":"object","additionalProperties":{"type":"string"},"description":"Further variables of its environment."}`+timeoutArgument, `"argv"`),
		Output: outputSchema,
		Hints:  tool.Hints{Timeout: longest + time.Minute},
	}
}

func runCmd(raw json.RawMessage) (handle.Cmd, error) {
	var in runIn
	if err := canon.Decode(raw, &in); err != nil {
		return handle.Cmd{}, err
	}
	if in.Argv[0] == "" {
		return handle.Cmd{}, errors.New(`argument "argv": the program's name is empty`)
	}
	if _, ok := in.Env["PATH"]; ok {
		return handle.Cmd{}, errors.New(`argument "env": PATH says what a program's name means and cannot be set; call the program by its path`)
	}
	if err := checkCwd(in.Cwd); err != nil {
		return handle.Cmd{}, err
	}
	c := handle.Cmd{Argv: in.Argv, Root: workspace, Dir: in.Cwd, Env: in.Env, Timeout: seconds(in.Timeout)}
	if in.Stdin != "" {
		c.Stdin = strings.NewReader(in.Stdin)
	}
	return c, nil
}

func checkCwd(cwd string) error {
	if _, err := perm.FileResource(workspace, cwd); errors.Is(err, perm.ErrOutside) {
		return errors.New(`argument "cwd": the path leaves its root; valid is a relative path inside it, without ".."`)
	} else if err != nil {
		return fmt.Errorf(`argument "cwd": %w`, err)
	}
	return nil
}

func seconds(n int) time.Duration {
	if n == 0 {
		return usual
	}
	return time.Duration(n) * time.Second
}
