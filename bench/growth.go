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
	list, err := growing()
	if err != nil {
		return nil, err
	}
	t, err := interleave(c, list...)
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

func growing() ([]subject, error) {
	few, err := opens(fewTools, 0)
	if err != nil {
		return nil, err
	}
	many, err := opens(manyTools, 0)
	if err != nil {
		return nil, err
	}
	alone, err := opens(1, 0)
	if err != nil {
		return nil, err
	}
	beside, err := opens(1, liveSessions)
	if err != nil {
		return nil, err
	}
	unused, err := callsAfter(0)
	if err != nil {
		return nil, err
	}
	used, err := callsAfter(usedTools)
	if err != nil {
		return nil, err
	}
	return []subject{
		{name: "30 tools", op: few, cpu: true}, {name: "3,000 tools", op: many, cpu: true},
		{name: "none live", op: alone, cpu: true}, {name: "10,000 live", op: beside, cpu: true},
		{name: "used none", op: unused, cpu: true}, {name: "used 1,000", op: used, cpu: true},
	}, nil
}

// opens returns an operation that opens a session of a runtime with so many
// tools, beside so many live sessions.
func opens(tools, live int) (func(int) error, error) {
	var rt *agent.Runtime
	var kept []*agent.Session
	ada := perm.Principal{ID: "ada", Kind: "agent"}
	renew := func() (err error) {
		if rt, err = runtimeOf(tools); err != nil {
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
	turn := 0
	return func(int) error {
		if turn%20_000 == 0 { // a journal in memory grows
			if err := renew(); err != nil {
				return err
			}
		}
		turn++
		_, err := rt.Session(context.Background(), ada)
		runtime.KeepAlive(kept)
		return err
	}, nil
}

// callsAfter returns an operation that calls a tool in a session that has
// called so many others.
func callsAfter(used int) (func(int) error, error) {
	turn := 0
	var tx *agent.Txn
	renew := func() error {
		rt, err := runtimeOf(usedTools + 1)
		if err != nil {
			return err
		}
		if tx, err = begun(rt); err != nil {
			return err
		}
		for i := range used {
			if _, err := tx.Invoke(context.Background(), fmt.Sprint("look_", i+1), nil); err != nil {
				return err
			}
		}
		return nil
	}
	return func(int) error {
		if turn%20_000 == 0 {
			if err := renew(); err != nil {
				return err
			}
		}
		turn++
		_, err := tx.Invoke(context.Background(), "look_0", nil)
		return err
	}, nil
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
