package policy

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/remit-dev/remit/cmd/remit/internal/cli"
	"github.com/remit-dev/remit/cmd/remit/internal/state"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// lineRequests returns the requests of the call that a line of a script makes in
// a new session.
func lineRequests(ctx context.Context, a *cli.App, line string) ([]perm.Request, error) {
	if line == "-" {
		text, err := cli.ReadInput(ctx, a.In, int64(canon.DefaultLimits().Bytes))
		if err != nil {
			return nil, inputProblem(line, err)
		}
		line = string(text)
	}
	name, args, err := callOf(line)
	if err != nil {
		return nil, err
	}
	tools, err := tool.NewRegistry(state.Tools(a)...)
	if err != nil {
		return nil, err
	}
	called, ok := tools.Get(name)
	if !ok {
		return nil, lineProblem(fmt.Sprintf("there is no tool %q: remit tools lists them", name))
	}
	return callRequests(a, called, args)
}

// callOf reads the step of one call as remit run does: each key once, and no other key.
func callOf(line string) (name string, args json.RawMessage, err error) {
	var step map[string]json.RawMessage
	if err := canon.Decode([]byte(line), &step); err != nil || step == nil {
		return "", nil, lineProblem("it is not one JSON object with each key once")
	}
	for key := range step {
		switch key {
		case "tool", "args":
		case "parallel":
			return "", nil, lineProblem("it makes several calls: write one of them as a line")
		default:
			return "", nil, lineProblem(fmt.Sprintf("the key %q is not of a call", key))
		}
	}
	if json.Unmarshal(step["tool"], &name) != nil || name == "" {
		return "", nil, lineProblem("it names no tool")
	}
	if args = step["args"]; args == nil {
		args = json.RawMessage("{}")
	}
	return name, args, nil
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
