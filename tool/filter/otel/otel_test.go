package otel_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/remit-dev/remit/agent"
	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/host/hosttest"
	"github.com/remit-dev/remit/perm"
	"github.com/remit-dev/remit/revert/effect"
	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
	"github.com/remit-dev/remit/tool/filter/otel"
)

func attrs(list []attribute.KeyValue) map[string]string {
	m := map[string]string{}
	for _, a := range list {
		m[string(a.Key)] = a.Value.String()
	}
	return m
}

// run makes calls of a tool that spends three seconds, one for each input.
func run(t *testing.T, what otel.Telemetry, inputs ...string) {
	h := hosttest.New(1)
	engine := perm.EngineFunc(func(context.Context, perm.Request) (perm.Decision, error) {
		return perm.NewDecision(perm.Allow, perm.Details{Revision: "r1", Redact: []string{"/args"}, Reasons: []perm.Reason{{Text: "so it is", At: "p.rego:3"}}}), nil
	})
	look, err := tool.FromSpec(tool.Spec{
		Name: "look", Description: "Looks.", EffectClass: effect.Pure,
		Execute: func(ctx context.Context, _ ctxperm.ToolContext, in json.RawMessage) (tool.Result, error) {
			h.Advance(3 * time.Second)
			if what.Traces != nil {
				_, inner := what.Traces.Tracer("tool").Start(ctx, "inner")
				inner.End()
			}
			if strings.Contains(string(in), "fail") {
				return tool.Result{}, tool.NoEffect(errors.New("no"))
			}
			return tool.Text("seen"), nil
		},
	})
	require.NoError(t, err)
	f, err := what.Filter()
	require.NoError(t, err)
	refuse := filter.Filter{Name: "strict", Before: func(_ context.Context, f filter.Call) error {
		if strings.Contains(string(f.Input()), "never") {
			return errors.New("never")
		}
		return nil
	}}
	rt, err := agent.New(agent.Host(h), agent.Tools(look), agent.Policy(engine), agent.Filters(f, refuse), agent.Log(slog.New(slog.DiscardHandler)))
	require.NoError(t, err)
	defer func() { require.NoError(t, rt.Close()) }()
	s, err := rt.Session(context.Background(), perm.Principal{ID: "coder"})
	require.NoError(t, err)
	tx, err := s.Begin(context.Background())
	require.NoError(t, err)
	ctx := context.Background()
	if what.Traces != nil {
		var outer trace.Span
		ctx, outer = what.Traces.Tracer("host").Start(ctx, "outer")
		defer outer.End()
	}
	for _, in := range inputs {
		_, _ = tx.Invoke(ctx, "look", in)
	}
}

func TestSpans(t *testing.T) {
	to := tracetest.NewInMemoryExporter()
	run(t, otel.Telemetry{Traces: sdktrace.NewTracerProvider(sdktrace.WithSyncer(to))}, "ok", "fail", "never")
	spans := map[string][]tracetest.SpanStub{}
	for _, s := range to.GetSpans() {
		spans[s.Name] = append(spans[s.Name], s)
	}
	require.Len(t, spans["execute_tool look"], 3)
	done, failed, denied := spans["execute_tool look"][0], spans["execute_tool look"][1], spans["execute_tool look"][2]

	require.Equal(t, trace.SpanKindInternal, done.SpanKind)
	require.Equal(t, 3*time.Second, done.EndTime.Sub(done.StartTime).Truncate(time.Second))
	require.Equal(t, spans["outer"][0].SpanContext.SpanID(), done.Parent.SpanID())
	require.Equal(t, done.SpanContext.SpanID(), spans["inner"][0].Parent.SpanID(), "what the tool does is inside")
	got := attrs(done.Attributes)
	require.NotEmpty(t, got["gen_ai.tool.call.id"])
	require.NotEmpty(t, got["tool.tx.id"])
	delete(got, "gen_ai.tool.call.id")
	delete(got, "tool.tx.id")
	require.Equal(t, map[string]string{
		"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look", "gen_ai.tool.type": "function", "gen_ai.tool.description": "Looks.",
		"tool.policy.decision": "allow", "tool.policy.rule": "p.rego:3", "tool.policy.bundle.revision": "r1",
	}, got)
	require.Equal(t, codes.Unset, done.Status.Code)

	require.Equal(t, codes.Error, failed.Status.Code)
	require.Equal(t, "failed", attrs(failed.Attributes)["error.type"])

	require.Equal(t, codes.Unset, denied.Status.Code, "a denial is no error")
	require.Equal(t, "strict", attrs(denied.Attributes)["tool.filter"])
	require.Len(t, denied.Events, 1)
	require.Equal(t, "denied", denied.Events[0].Name)
	require.Equal(t, "filter", attrs(denied.Events[0].Attributes)["tool.policy.stage"])
}

func TestContentIsWithoutWhatThePolicyRedacts(t *testing.T) {
	to := tracetest.NewInMemoryExporter()
	run(t, otel.Telemetry{Traces: sdktrace.NewTracerProvider(sdktrace.WithSyncer(to)), Content: true}, "a secret")
	for _, s := range to.GetSpans() {
		if s.Name == "execute_tool look" {
			require.Equal(t, `"(hidden)"`, attrs(s.Attributes)["gen_ai.tool.call.arguments"])
			require.Equal(t, `"seen"`, attrs(s.Attributes)["gen_ai.tool.call.result"])
			return
		}
	}
	t.Fatal("no span")
}

func TestDuration(t *testing.T) {
	reader := sdkmetric.NewManualReader()
	run(t, otel.Telemetry{Metrics: sdkmetric.NewMeterProvider(sdkmetric.WithReader(reader))}, "ok", "ok", "fail")
	var all metricdata.ResourceMetrics
	require.NoError(t, reader.Collect(context.Background(), &all))
	require.Len(t, all.ScopeMetrics, 1)
	m := all.ScopeMetrics[0].Metrics[0]
	require.Equal(t, "gen_ai.execute_tool.duration", m.Name)
	require.Equal(t, "s", m.Unit)
	h, ok := m.Data.(metricdata.Histogram[float64])
	require.True(t, ok)
	sums := map[string]string{}
	for _, p := range h.DataPoints {
		failed, _ := p.Attributes.Value("error.type")
		sums[failed.AsString()] = fmt.Sprint(p.Count, " ", int(p.Sum))
	}
	require.Equal(t, map[string]string{"": "2 6", "failed": "1 3"}, sums)
}

func TestNothingIsSentWithoutAClient(t *testing.T) { run(t, otel.Telemetry{}, "ok", "fail") }

// The filter stands first, so that its span is around the others.
func Example() {
	f, err := otel.Telemetry{Traces: sdktrace.NewTracerProvider()}.Filter() // the program's own providers
	if err != nil {
		fmt.Println(err)
		return
	}
	rt, err := agent.New(agent.Filters(f), agent.Log(slog.New(slog.DiscardHandler)))
	if err != nil {
		fmt.Println(err)
		return
	}
	defer func() { _ = rt.Close() }()
	for _, f := range rt.Filters() {
		fmt.Println(f.Name, f.Hooks())
	}
	// Output: otel [before ended denied]
}
