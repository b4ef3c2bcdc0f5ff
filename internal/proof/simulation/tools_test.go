package simulation_test

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/internal/proof/opcheck"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/verify"
)

var anyFile = []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/**"), perm.Access(perm.Delete, "file://workspace/**")}

// tools are the tools of agents. They find their world through the context, so
// one set serves all.
var tools = []tool.Tool{
	made(tool.CreateWith("write", "Writes files.", anyFile, writes, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))),
	made(tool.CreateWith("book", "Asks the service, with a key.", nil, asks(true), tool.Effect(effect.Compensable), tool.VerifyWith(finds), tool.RevertWith("1", cancels))),
	made(tool.CreateWith("order", "Asks the service, without a key.", nil, asks(false), tool.Effect(effect.Compensable), tool.RevertWith("1", cancels))),
	made(tool.CreateWith("fire", "Asks the service for what stays.", nil, asks(false), tool.Effect(effect.Pivot))),
	made(tool.CreateWith("mail", "Asks the service once the transaction commits.", nil, asks(false), tool.Effect(effect.Deferrable))),
	made(tool.CreateWith("never", "Is never allowed.", nil, asks(false), tool.Effect(effect.Pivot))),
	made(tool.Stateful(counted, "Keeps its tags for the session.", nil, nothing, counts, tool.Effect(effect.Reversible), tool.Confined(tool.Handles))),
}

const counted = "count"

func nothing(context.Context, ctxperm.ToolContext) ([]string, error) { return []string{}, nil }

// counts adds its tag to the state that the session's earlier calls left.
// Others may run meanwhile, and it fails at "!".
func counts(ctx context.Context, tc ctxperm.ToolContext, tag string, was []string) (string, []string, error) {
	a, _ := ctx.Value(actorKey{}).(*actor)
	for range 4 {
		stateOf(ctx).sched.park(ctx, a.proc, "count")
	}
	if strings.HasSuffix(tag, "!") {
		return "", append(was, tag), errNoAnswer
	}
	return tc.Call().ID, append(was, tag), nil
}

func made(t tool.Tool, err error) tool.Tool {
	must(err)
	return t
}

// policy holds deferrable calls, denies the forbidden tool, and allows
// everything else.
var policy = perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
	switch r.Tool.Name {
	case "mail":
		return hold, nil
	case "never":
		return deny, nil
	default:
		return allow, nil
	}
})

var hold, deny, allow = decided(perm.Hold), decided(perm.Deny), decided(perm.Allow)

func decided(e perm.Effect) perm.Decision {
	return perm.NewDecision(e, perm.Details{Reasons: []perm.Reason{{Text: "so it is"}}})
}

// writes executes its input in sequence: "a.txt=x" writes, "a.txt>b.txt" moves,
// "a.txt-" removes, and at "!" the tool fails.
func writes(ctx context.Context, tc ctxperm.ToolContext, input string) (string, error) {
	growStack(1)
	f, err := handle.Open(tc, "workspace")
	if err != nil {
		return "", err
	}
	w, call := stateOf(ctx), tc.Call()
	left := func(path, content string) {
		w.say(opcheck.Event{Kind: opcheck.Left, Txn: call.Txn, Call: call.ID, Resource: resourceOf(path), Content: content})
	}
	for part := range strings.SplitSeq(input, ",") {
		path, content, write := strings.Cut(part, "=")
		from, to, move := strings.Cut(part, ">")
		switch {
		case part == "!":
			return "", errNoAnswer
		case write:
			if err := f.Write(ctx, path, []byte(content), handle.WriteOptions{}); err != nil {
				return "", err
			}
			left(path, content)
		case move:
			if err := f.Move(ctx, from, to); err != nil {
				return "", err
			}
			left(from, "")
			left(to, "")
		default:
			path = strings.TrimSuffix(part, "-")
			if err := f.Delete(ctx, path); err != nil {
				return "", err
			}
			left(path, "")
		}
	}
	return "done", nil
}

// asks is the code of the tools that act on the service. With a key it repeats
// a request without a response.
func asks(keyed bool) func(context.Context, ctxperm.ToolContext, string) (string, error) {
	return func(ctx context.Context, tc ctxperm.ToolContext, tag string) (string, error) {
		w, call := stateOf(ctx), tc.Call()
		ask := func() error { return w.ask(ctx, &request{key: call.Key, call: call.ID, tag: tag, keyed: keyed}) }
		err := ask()
		if err != nil && keyed {
			err = ask()
		}
		return "asked", err
	}
}

// cancels reverts under a key, which the service remembers: it refuses later
// requests with the key.
func cancels(ctx context.Context, rc tool.RevertContext) error {
	return stateOf(ctx).ask(ctx, &request{key: rc.Key, call: "cancel", cancel: true})
}

// finds reports absence only if no request can arrive any more.
func finds(ctx context.Context, s verify.Subject) verify.Verdict {
	var tag string
	if err := json.Unmarshal(s.Input, &tag); err != nil {
		return verify.CannotTell(err.Error())
	}
	switch there, can := stateOf(ctx).service.has(tag); {
	case there:
		return verify.Applied()
	case can:
		return verify.CannotTell("it is not there, and may come")
	default:
		return verify.Absent("it was cancelled")
	}
}
