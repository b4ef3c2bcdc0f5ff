package policy

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// lineRequests returns the requests of the call that a line of a script makes in
// a new session.
func lineRequests(a *cli.App, line string) ([]perm.Request, error) {
	if line == "-" {
		text, err := io.ReadAll(io.LimitReader(a.In, int64(canon.DefaultLimits().Bytes)))
		if err != nil {
			return nil, inputProblem(line, err)
		}
		line = string(text)
	}
	var step struct {
		Tool string          `json:"tool"`
		Args json.RawMessage `json:"args"`
	}
	if err := json.Unmarshal([]byte(line), &step); err != nil {
		return nil, lineProblem("it is not one JSON object: " + err.Error())
	}
	if step.Tool == "" {
		return nil, lineProblem("it names no tool")
	}
	if len(step.Args) == 0 {
		step.Args = json.RawMessage("{}")
	}
	tools, err := tool.NewRegistry(state.Tools(a)...)
	if err != nil {
		return nil, err
	}
	called, ok := tools.Get(step.Tool)
	if !ok {
		return nil, lineProblem(fmt.Sprintf("there is no tool %q: remit tools lists them", step.Tool))
	}
	return callRequests(a, called, step.Args)
}

// callRequests returns a request for each access of a call.
func callRequests(a *cli.App, called tool.Tool, args json.RawMessage) (all []perm.Request, err error) {
	accesses, err := called.Accesses(args)
	if err != nil {
		return nil, lineProblem(err.Error())
	}
	spec := called.Spec()
	base := perm.Request{
		Purpose: perm.PurposeRun, Time: a.Host.Now(), Tool: called.Facts(), Principal: perm.Principal{ID: "agent", Kind: "agent"}, Session: perm.SessionFacts{ID: "s_new"}, Txn: perm.TxnFacts{ID: "t_new"},
		Call: perm.CallFacts{ID: "c_new", Args: args, EffectClass: string(called.Class()), Declared: spec.EffectClass != "", Batch: perm.BatchFacts{Count: 1}},
	}
	if spec.ParseScript != nil {
		base.Call.Script = spec.ParseScript(args)
	}
	if len(accesses) == 0 {
		accesses = []perm.ResourceAccess{{Action: perm.Call, Resource: "tool://" + called.Name()}}
	}
	for _, access := range accesses {
		r, err := perm.ParseResource(access.Resource)
		if err != nil {
			return nil, lineProblem(err.Error())
		}
		one := base
		one.Access = perm.AccessFacts{Action: access.Action, Resource: r.Facts(), Method: access.Method}
		one.Access.Resource.Argv = access.Argv.List()
		all = append(all, one)
	}
	return all, nil
}

func lineProblem(why string) error {
	return &cli.Problem{
		Code: cli.ExitUsage, What: "the line cannot be used", Why: why,
		Fix: `write it as in a script: {"tool":"file_read","args":{"path":"a"}}`,
	}
}
