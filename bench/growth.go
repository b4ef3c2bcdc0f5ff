package main

import (
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"strings"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/tool"
)

// The sizes that growth compares.
const (
	fewTools, manyTools = 30, 3_000
	usedTools           = 1_000
	liveSessions        = 10_000
	largeResult         = 4 << 20
)

// growth checks that a cost does not follow what exists beside the work: the
// other tools, the other sessions, the calls of other tools.
func growth(c clock) ([]promiseRow, error) {
	t, err := interleave(c, growing()...)
	if err != nil {
		return nil, err
	}
	size, err := allocated(largeResult)
	if err != nil {
		return nil, err
	}
	return []promiseRow{
		most("growth", "open a session with 3,000 tools, to 30", t, "3,000 tools", "30 tools", 2),
		most("growth", "call where 1,000 tools were used, to none", t, "used 1,000", "used none", 1.2),
		most("growth", "open a session beside 10,000 live ones, to none", t, "10,000 live", "none live", 1.2),
		{
			Suite: "growth", What: "allocated for a result of 4 MB, to its size", Ratio: size, Target: 3, Met: size <= 3,
			Of: fmt.Sprintf("%.1f MiB", size*largeResult/(1<<20)), To: fmt.Sprintf("%d MiB", largeResult>>20),
		},
	}, nil
}

func growing() []subject {
	return []subject{
		opens("30 tools", fewTools, 0), opens("3,000 tools", manyTools, 0),
		opens("none live", 1, 0), opens("10,000 live", 1, liveSessions),
		callsAfter("used none", 0), callsAfter("used 1,000", usedTools),
	}
}

// opens returns a subject that opens a session of a runtime with so many tools,
// beside so many live sessions. Each measurement has a runtime of its own,
// because a journal in memory grows. A first session was opened before: what a
// runtime computes once for its tools is not the cost of a session.
func opens(name string, tools, live int) subject {
	var rt *agent.Runtime
	var kept []*agent.Session
	ada := perm.Principal{ID: "ada", Kind: "agent"}
	ready := func() (err error) {
		if rt, err = runtimeOf(tools); err != nil {
			return err
		}
		if _, err = rt.Session(context.Background(), ada); err != nil {
			return err
		}
		kept = make([]*agent.Session, live)
		for i := range kept {
			if kept[i], err = rt.Session(context.Background(), ada); err != nil {
				return err
			}
		}
		return nil
	}
	return subject{name: name, cpu: true, ready: ready, op: func(int) error {
		_, err := rt.Session(context.Background(), ada)
		runtime.KeepAlive(kept)
		return err
	}}
}

// callsAfter returns a subject that calls a tool in a session that has called
// so many others. Each measurement has a session of its own.
func callsAfter(name string, used int) subject {
	var tx *agent.Txn
	ready := func() error {
		rt, err := runtimeOf(usedTools + 1)
		if err != nil {
			return err
		}
		if tx, err = begun(rt); err != nil {
			return err
		}
		for i := range used {
			if err := look(tx, i+1); err != nil {
				return err
			}
		}
		return nil
	}
	return subject{name: name, cpu: true, ready: ready, op: func(int) error { return look(tx, 0) }}
}

// look calls one tool of runtimeOf.
func look(tx *agent.Txn, tool int) error {
	out, err := tx.Invoke(context.Background(), fmt.Sprint("look_", tool), nil)
	if err == nil && out.Result.Text != "ok" {
		err = fmt.Errorf("%w: %s", errAnswer, out.Status)
	}
	return err
}

// runtimeOf returns a runtime with so many tools. Each can read a folder of its
// own.
func runtimeOf(tools int) (*agent.Runtime, error) {
	list := make([]tool.Tool, tools)
	for i := range list {
		var err error
		list[i], err = tool.FromSpec(tool.Spec{
			Name: fmt.Sprint("look_", i), Description: "Looks at a file.", Input: json.RawMessage(`{"type": "object", "additionalProperties": false}`), EffectClass: "pure",
			Needs: []perm.ResourceAccess{{Action: perm.Read, Resource: fmt.Sprintf("file://data/%d/**", i)}},
			Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
				return tool.Result{Text: "ok"}, nil
			},
		})
		if err != nil {
			return nil, err
		}
	}
	return agent.New(agent.Tools(list...), agent.Policy(permitAll()))
}

func permitAll() perm.Engine {
	return perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Reasons: []perm.Reason{{Text: "everything"}}}), nil
	})
}

// allocated returns how much a call with a result of a size allocates, as a
// multiple of the size.
func allocated(size int) (float64, error) {
	text := strings.Repeat("0123456789abcdef", size/16)
	large, err := tool.FromSpec(tool.Spec{
		Name: "large", Description: "Returns a long text.", Input: json.RawMessage(`{"type": "object", "additionalProperties": false}`), EffectClass: "pure",
		Execute: func(context.Context, ctxperm.ToolContext, json.RawMessage) (tool.Result, error) {
			return tool.Result{Text: text}, nil
		},
	})
	if err != nil {
		return 0, err
	}
	rt, err := agent.New(agent.Tools(large), agent.Policy(permitAll()))
	if err != nil {
		return 0, err
	}
	tx, err := begun(rt)
	if err != nil {
		return 0, err
	}
	const rounds = 8
	var before, after runtime.MemStats
	for i := range 1 + rounds { // the first warms up
		if i == 1 {
			runtime.ReadMemStats(&before)
		}
		out, err := tx.Invoke(context.Background(), "large", nil)
		if err == nil && len(out.Result.Text) != size {
			err = fmt.Errorf("%w: %s", errAnswer, out.Status)
		}
		if err != nil {
			return 0, err
		}
	}
	runtime.ReadMemStats(&after)
	return float64(after.TotalAlloc-before.TotalAlloc) / rounds / float64(size), nil
}
