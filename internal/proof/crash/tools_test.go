package crash_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/remit-dev/remit/ctxperm"
	handle "github.com/remit-dev/remit/ctxperm/files"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/builtin"
	"github.com/remit-dev/remit/verify"
)

var (
	anyFile  = []perm.ResourceAccess{perm.Access(perm.Write, "file://workspace/**"), perm.Access(perm.Delete, "file://workspace/**")}
	rowNeeds = []perm.ResourceAccess{perm.Access(perm.Write, "db://main/stock")}
)

// tools are the tools of all worlds. They find the service through the context,
// so one set serves all worlds.
var tools = slices.Concat(builtin.Files(), fileTools(), remoteTools())

func made(t tool.Tool, err error) tool.Tool {
	must(err)
	return t
}

// fileTools use the handle for files in ways that no built-in tool does.
func fileTools() []tool.Tool {
	with := func(name string, do func(context.Context, *handle.Files) error) tool.Tool {
		return made(tool.CreateWith(name, "Changes files.", anyFile, func(ctx context.Context, tc ctxperm.ToolContext, _ string) (string, error) {
			f, err := handle.Open(tc, "workspace")
			if err != nil {
				return "", err
			}
			return "changed", do(ctx, f)
		}, tool.Effect(effect.Reversible), tool.Confined(tool.Handles)))
	}
	return []tool.Tool{
		with("chmod", func(ctx context.Context, f *handle.Files) error { return f.Chmod(ctx, "a.txt", 0o600) }),
		with("chmod_dir", func(ctx context.Context, f *handle.Files) error { return f.Chmod(ctx, "dir", 0o700) }),
		with("symlink", func(ctx context.Context, f *handle.Files) error { return f.Symlink(ctx, "b.txt", "new.txt") }),
		// Two writes, with an error after the first one if it must not be
		// reverted.
		with("pair", func(ctx context.Context, f *handle.Files) error {
			if err := f.Write(ctx, "b.txt", []byte("of a pair"), handle.WriteOptions{}); err != nil {
				return err
			}
			return f.Write(ctx, "dir/new.txt", []byte("of a pair"), handle.WriteOptions{})
		}),
		counts("count", func(context.Context, ctxperm.ToolContext) error { return nil }),
		counts("broken", func(ctx context.Context, tc ctxperm.ToolContext) error {
			f, err := handle.Open(tc, "workspace")
			if err == nil {
				err = f.Write(ctx, "b.txt", []byte("of a call that fails"), handle.WriteOptions{})
			}
			return errors.Join(err, errors.New("and then it fails"))
		}),
	}
}

const counted = "count"

// counts returns a tool that adds its tag to the state that all tools of its
// kind share.
func counts(name string, then func(context.Context, ctxperm.ToolContext) error) tool.Tool {
	none := func(context.Context, ctxperm.ToolContext) ([]string, error) { return []string{}, nil }
	add := func(ctx context.Context, tc ctxperm.ToolContext, tag string, was []string) (string, []string, error) {
		return "counted", append(was, tag), then(ctx, tc)
	}
	t := made(tool.Stateful(counted, "Counts.", anyFile, none, add, tool.Effect(effect.Reversible), tool.Confined(tool.Handles)))
	return made(t.Modify(func(s *tool.Spec) { s.Name = name }))
}

// service is the behavior of a tool that acts on the service.
type service struct {
	keyed, failing, lost bool // its key is sent with the request; the response is an error; the request is lost
}

func (s service) execute(ctx context.Context, tc ctxperm.ToolContext, tag string) (string, error) {
	r := remoteOf(ctx)
	r.enter(tag)
	key := ""
	if s.keyed {
		key = tc.Call().Key
	}
	if !s.lost {
		r.post(key, tag)
	}
	if s.failing || s.lost {
		return "", errors.New("the connection broke")
	}
	return "sent", nil
}

// cancels is the Revert of the tools that have one. An unknown key needs no
// revert.
func cancels(ctx context.Context, rc tool.RevertContext) error {
	var tag string
	if err := json.Unmarshal(rc.Input, &tag); err != nil {
		return err
	}
	r := remoteOf(ctx)
	if r.knows(rc.Key) {
		r.cancel(rc.RevertKey, tag)
	}
	return nil
}

// finds is the Verify of the tools that have one.
func finds(ctx context.Context, s verify.Subject) verify.Verdict {
	var tag string
	if err := json.Unmarshal(s.Input, &tag); err != nil {
		return verify.CannotTell(err.Error())
	}
	if done, undone, _ := remoteOf(ctx).of(tag); done > undone {
		return verify.Applied()
	}
	return verify.Absent("the service has no such thing")
}

// notes is code that notes the data for its Revert before it calls the service.
func notes(ctx context.Context, tc ctxperm.ToolContext, tag string) (string, error) {
	if err := tc.Note(ctx, "id", tag); err != nil {
		return "", tool.NoEffect(err)
	}
	return service{keyed: true}.execute(ctx, tc, tag)
}

// cancelsWithNote is cancels for a service that needs the tag to cancel.
func cancelsWithNote(ctx context.Context, rc tool.RevertContext) error {
	if _, ok := rc.Notes["id"]; !ok && remoteOf(ctx).knows(rc.Key) {
		return errors.New("it was not noted what to cancel")
	}
	return cancels(ctx, rc)
}

func idempotent(s *tool.Spec) { s.Hints.Idempotent = true }

func remoteTools() []tool.Tool {
	with := func(name string, class effect.Class, s service, opts ...tool.Option) tool.Tool {
		return made(tool.CreateWith(name, "Asks the service for something.", nil, s.execute, append(opts, tool.Effect(class))...))
	}
	found, back := tool.VerifyWith(finds), tool.RevertWith("1", cancels)
	return []tool.Tool{
		made(tool.Create("think", "Does nothing.", func(context.Context, string) (string, error) { return "thought", nil }, tool.Pure())),
		with("book", effect.Compensable, service{keyed: true}, found, back),
		with("order", effect.Compensable, service{keyed: true}, back),
		with("charge", effect.Pivot, service{keyed: true}, found),
		with("fire", effect.Pivot, service{}),
		with("book_lost", effect.Compensable, service{keyed: true, lost: true}, found, back),
		with("book_unheard", effect.Compensable, service{keyed: true, failing: true}, found, back),
		with("mail", effect.Deferrable, service{}),
		with("keyed_mail", effect.Deferrable, service{keyed: true}, idempotent),
		with("seen_mail", effect.Deferrable, service{keyed: true}, found),
		with("forbidden", effect.Pivot, service{}),
		made(rowTool()),
		made(tool.CreateWith("noted", "Asks the service for something.", nil, notes, found, tool.RevertWith("1", cancelsWithNote), tool.Effect(effect.Compensable))),
	}
}

// policy holds deferrable calls, denies the forbidden tool, and allows
// everything else.
var policy = perm.EngineFunc(func(_ context.Context, r perm.Request) (perm.Decision, error) {
	verdict, why := perm.Allow, "everything"
	switch {
	case r.Tool.Name == "forbidden":
		verdict, why = perm.Deny, "never"
	case r.Call.EffectClass == string(effect.Deferrable):
		verdict, why = perm.Hold, "it can wait"
	}
	return perm.NewDecision(verdict, perm.Details{Reasons: []perm.Reason{{Text: why}}}), nil
})
