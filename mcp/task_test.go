package mcp_test

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/mcp"
	"github.com/remit-dev/remit/perm/rego"
	"github.com/remit-dev/remit/revert"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
)

// taskResult is any answer about a task, as it is on the wire.
type taskResult struct {
	sdk.ResultBase
	ResultType string `json:"resultType"`
	TaskID     string `json:"taskId"`
	Status     string `json:"status"`
	CreatedAt  string `json:"createdAt"`
	TTL        any    `json:"ttlMs"`
	Poll       int    `json:"pollIntervalMs"`
	Result     struct {
		Content []struct {
			Text string `json:"text"`
		} `json:"content"`
		IsError bool `json:"isError"`
	} `json:"result"`
}

type taskParams struct {
	sdk.ParamsBase
	Name      string          `json:"name,omitempty"`
	Arguments json.RawMessage `json:"arguments,omitempty"`
	TaskID    string          `json:"taskId,omitempty"`
}

// taskClient is one that knows the extension. The SDK does not: what it would refuse to read goes as a method of its own.
func (o *office) taskClient(in *agent.Session) func(method string, p *taskParams) (*taskResult, error) {
	caps := &sdk.ClientCapabilities{}
	caps.AddExtension("io.modelcontextprotocol/tasks", nil)
	here, there := sdk.NewInMemoryTransports()
	go func() { _ = o.srv.Run(context.WithoutCancel(o.t.Context()), there, in) }()
	client := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, &sdk.ClientOptions{Capabilities: caps})
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		require.NoError(o.t, sdk.AddSendingCustomMethod[*taskParams, *taskResult](client, method))
	}
	cs, err := client.Connect(o.t.Context(), here, nil)
	require.NoError(o.t, err)
	o.t.Cleanup(func() { require.NoError(o.t, cs.Close()) })
	return func(method string, p *taskParams) (*taskResult, error) {
		if method == "tools/call" {
			r, err := cs.CallTool(o.t.Context(), &sdk.CallToolParams{Name: p.Name, Arguments: p.Arguments})
			if err != nil {
				return nil, err
			}
			return &taskResult{TaskID: remitMeta(r, "call"), ResultBase: sdk.ResultBase{Meta: r.Meta}}, nil
		}
		return sdk.CallCustomMethod[*taskParams, *taskResult](o.t.Context(), cs, method, p)
	}
}

// TestTask checks that a call that waits for an approval is a task. The task
// ends after the approver has answered.
func TestTask(t *testing.T) {
	input, err := json.Marshal(letterInput)
	require.NoError(t, err)
	for _, tt := range []struct {
		name   string
		meet   func(o *office, id string, ask func(string, *taskParams) (*taskResult, error))
		status string
		failed bool
		sent   int64
	}{
		{"approved", func(o *office, id string, _ func(string, *taskParams) (*taskResult, error)) {
			require.NoError(o.t, o.rt.Answer(o.t.Context(), agent.Answer{Call: id, Approved: true, By: "boss"}))
		}, "completed", false, 1},
		{"refused", func(o *office, id string, _ func(string, *taskParams) (*taskResult, error)) {
			require.NoError(o.t, o.rt.Answer(o.t.Context(), agent.Answer{Call: id, By: "boss"}))
		}, "completed", true, 0},
		{"not answered", func(*office, string, func(string, *taskParams) (*taskResult, error)) {}, "working", false, 0},
		{"cancelled", func(o *office, id string, ask func(string, *taskParams) (*taskResult, error)) {
			r, err := ask("tasks/cancel", &taskParams{TaskID: id})
			require.NoError(o.t, err)
			require.Equal(o.t, "complete", r.ResultType)
		}, "cancelled", false, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			o := newOffice(t, mcp.Options{})
			ask := o.taskClient(o.session("coder"))
			made, err := ask("tools/call", &taskParams{Name: "send", Arguments: input})
			require.NoError(t, err)
			_, err = ask("tasks/update", &taskParams{TaskID: made.TaskID})
			require.NoError(t, err)
			tt.meet(o, made.TaskID, ask)
			for range 2 { // the second time from the journal
				r, err := ask("tasks/get", &taskParams{TaskID: made.TaskID})
				for tries := 0; err == nil && r.Status == "working" && tt.status == "completed" && tries < 100_000; tries++ {
					r, err = ask("tasks/get", &taskParams{TaskID: made.TaskID}) // it is waited for only for a moment
				}
				require.NoError(t, err)
				require.Equal(t, "complete", r.ResultType)
				require.Equal(t, tt.status, r.Status)
				require.Equal(t, made.TaskID, r.TaskID)
				require.NotEmpty(t, r.CreatedAt)
				require.Equal(t, tt.failed, r.Result.IsError)
				if tt.status == "completed" {
					require.NotEmpty(t, r.Result.Content[0].Text)
				}
			}
			require.Equal(t, tt.sent, o.sent.Load())
			_, c, err := revert.LoadCall(t.Context(), o.rt.Journal(), made.TaskID)
			require.NoError(t, err)
			stands, err := revert.Load(t.Context(), o.rt.Journal(), c.Ref.Txn)
			require.NoError(t, err)
			require.Equal(t, tt.status == "working", stands.State() == revert.TxnOpen)
		})
	}
}

// TestTaskOfOthers: a task of another session is none.
func TestTaskOfOthers(t *testing.T) {
	o := newOffice(t, mcp.Options{})
	made := o.call(o.client(modern, nil), "send", letterInput)
	ask := o.taskClient(o.session("somebody else"))
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		_, err := ask(method, &taskParams{TaskID: remitMeta(made, "call")})
		require.ErrorContains(t, err, "unknown task")
	}
	require.Equal(t, "pending", made.Meta["remit.dev/status"])
	require.Equal(t, tool.StatusPending, tool.Status(remitMeta(o.call(o.client(modern, nil), "send", letterInput), "status")))
}

// TestTaskCancelledWhileItRuns: a task that is cancelled while its call runs stops it, and the call ends as one that was cancelled.
func TestTaskCancelledWhileItRuns(t *testing.T) {
	for _, class := range []effect.Class{effect.Pure, effect.Pivot} {
		t.Run(string(class), func(t *testing.T) {
			entered := make(chan struct{})
			slow, err := tool.Create("slow", "", func(context.Context, string) (string, error) { return "", nil }, tool.Effect(class))
			require.NoError(t, err)
			spec := slow.Spec()
			spec.Execute = func(ctx context.Context, _ ctxperm.ToolContext, _ json.RawMessage) (tool.Result, error) {
				close(entered)
				<-ctx.Done()
				return tool.Result{}, context.Cause(ctx)
			}
			slow, err = tool.FromSpec(spec)
			require.NoError(t, err)
			engine, err := rego.New(rego.Options{Timeout: time.Minute, Modules: map[string]string{"p.rego": `package remit
				ask contains "slow" if input.tool.name == "slow"`}})
			require.NoError(t, err)
			o := &office{serverSetup: newServerSetup(t, mcp.Options{}, agent.SuspendForApproval(), agent.Policy(engine), agent.Tools(slow))}
			ask := o.taskClient(o.session("coder"))
			made, err := ask("tools/call", &taskParams{Name: "slow", Arguments: json.RawMessage(`{"input":"x"}`)})
			require.NoError(t, err)
			require.NoError(t, o.rt.Answer(t.Context(), agent.Answer{Call: made.TaskID, Approved: true, By: "boss"}))
			first := make(chan *taskResult, 1)
			go func() {
				r, err := ask("tasks/get", &taskParams{TaskID: made.TaskID})
				if err != nil {
					t.Error(err)
				}
				first <- r
			}()
			<-entered
			_, err = ask("tasks/cancel", &taskParams{TaskID: made.TaskID})
			require.NoError(t, err)
			want := map[effect.Class]string{effect.Pure: "cancelled", effect.Pivot: "completed"}[class]
			require.Contains(t, []string{want, "working"}, (<-first).Status)
			r := &taskResult{Status: "working"}
			for r.Status == "working" {
				r, err = ask("tasks/get", &taskParams{TaskID: made.TaskID})
				require.NoError(t, err)
			}
			require.Equal(t, want, r.Status)
			require.Equal(t, class == effect.Pivot, r.Result.IsError, "nobody can tell what it did")
		})
	}
}
