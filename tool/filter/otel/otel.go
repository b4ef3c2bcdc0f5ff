// Package otel has a filter that tells OpenTelemetry of calls: one span for each, and one
// histogram of how long they took, by the conventions for generative AI (operation
// execute_tool), which are still in development. It imports the API of OpenTelemetry
// and no SDK: what becomes of the telemetry is up to the program.
package otel

import (
	"context"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/remit-dev/remit/tool"
	"github.com/remit-dev/remit/tool/filter"
)

// scope names the instrumentation.
const scope = "github.com/remit-dev/remit/tool/filter/otel"

// The names of the conventions, and remit's own. They are here, and not taken from a
// package of OpenTelemetry, because the conventions change and no stable one has them.
const (
	operationKey   = attribute.Key("gen_ai.operation.name")
	toolKey        = attribute.Key("gen_ai.tool.name")
	callKey        = attribute.Key("gen_ai.tool.call.id")
	descriptionKey = attribute.Key("gen_ai.tool.description")
	typeKey        = attribute.Key("gen_ai.tool.type")
	argumentsKey   = attribute.Key("gen_ai.tool.call.arguments")
	resultKey      = attribute.Key("gen_ai.tool.call.result")
	errorKey       = attribute.Key("error.type")
	decisionKey    = attribute.Key("tool.policy.decision")
	ruleKey        = attribute.Key("tool.policy.rule")
	revisionKey    = attribute.Key("tool.policy.bundle.revision")
	stageKey       = attribute.Key("tool.policy.stage")
	txnKey         = attribute.Key("tool.tx.id")
	filterKey      = attribute.Key("tool.filter")
	durationName   = "gen_ai.execute_tool.duration"
	operation      = "execute_tool"
)

// Telemetry is where calls are told of. A provider that is nil is told nothing.
type Telemetry struct {
	Traces  trace.TracerProvider
	Metrics metric.MeterProvider
	// Content also tells the arguments and the result, without what the policy redacts.
	// They are part of no telemetry otherwise.
	Content bool
}

// Filter makes the filter "otel". It should stand before the others: its span is then
// around what they do, and the parent of every span of the tool's own. The span's
// parent is that of the context which the call was made with.
//
// A call that is denied has a span with an event, and no error. One that is held, or that asks while it runs and
// waits, has a span for each attempt; one that waits before it runs has none.
func (t Telemetry) Filter() (filter.Filter, error) {
	w := &watch{content: t.Content}
	if t.Traces != nil {
		w.tracer = t.Traces.Tracer(scope)
	}
	if t.Metrics != nil {
		var err error
		w.took, err = t.Metrics.Meter(scope).Float64Histogram(durationName, metric.WithUnit("s"), metric.WithDescription("How long the call of a tool took."),
			metric.WithExplicitBucketBoundaries(0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300))
		if err != nil {
			return filter.Filter{}, fmt.Errorf("otel: %w", err)
		}
	}
	return filter.Filter{Name: "otel", Before: w.before, Ended: w.ended, Denied: w.denied}, nil
}

// watch is the filter.
type watch struct {
	tracer  trace.Tracer
	took    metric.Float64Histogram
	content bool
}

// running is a call that has begun.
type running struct {
	at   time.Time
	span trace.Span // nil: no traces
}

func (w *watch) before(ctx context.Context, f filter.Call) error {
	f.SetContext(w.begin(ctx, f))
	return nil
}

// denied tells of a call that never got here: it took no time.
func (w *watch) denied(ctx context.Context, f filter.Call, o tool.Outcome) {
	w.ended(w.begin(ctx, f), f, o)
}

// begin begins a span, and returns the context in it.
func (w *watch) begin(ctx context.Context, f filter.Call) context.Context {
	r := running{at: f.Now()}
	if w.tracer != nil {
		d := f.Decision()
		attrs := []attribute.KeyValue{
			operationKey.String(operation), toolKey.String(f.Tool().Name()), callKey.String(f.ID()), typeKey.String("function"),
			txnKey.String(f.Txn()), decisionKey.String(d.Effect), revisionKey.String(d.Revision),
		}
		if text := f.Tool().Spec().Description; text != "" {
			attrs = append(attrs, descriptionKey.String(text))
		}
		if len(d.Reasons) > 0 && d.Reasons[0].At != "" {
			attrs = append(attrs, ruleKey.String(d.Reasons[0].At))
		}
		if w.content {
			attrs = append(attrs, argumentsKey.String(string(f.RedactedInput())))
		}
		ctx, r.span = w.tracer.Start(ctx, operation+" "+f.Tool().Name(),
			trace.WithSpanKind(trace.SpanKindInternal), trace.WithTimestamp(r.at), trace.WithAttributes(attrs...))
	}
	f.Properties().Store(w, r)
	return ctx
}

func (w *watch) ended(ctx context.Context, f filter.Call, o tool.Outcome) {
	v, _ := f.Properties().Load(w)
	r, ok := v.(running)
	if !ok {
		return
	}
	now := f.Now()
	attrs := []attribute.KeyValue{operationKey.String(operation), toolKey.String(o.Tool)}
	if failed := errorType(o); failed != "" {
		attrs = append(attrs, errorKey.String(failed))
	}
	if w.took != nil {
		w.took.Record(ctx, max(0, now.Sub(r.at)).Seconds(), metric.WithAttributes(attrs...))
	}
	if r.span != nil {
		w.end(r.span, o, now)
	}
}

// end ends a span with how the call ended.
func (w *watch) end(span trace.Span, o tool.Outcome, now time.Time) {
	if failed := errorType(o); failed != "" {
		span.SetAttributes(errorKey.String(failed))
		span.SetStatus(codes.Error, o.Error.What)
	}
	if o.Filter != "" {
		span.SetAttributes(filterKey.String(o.Filter))
	}
	if o.Status == tool.StatusDenied {
		span.AddEvent("denied", trace.WithTimestamp(now), trace.WithAttributes(stageKey.String(o.Stage)))
	}
	if w.content && o.Status == tool.StatusDone {
		span.SetAttributes(resultKey.String(string(o.Output)))
	}
	span.End(trace.WithTimestamp(now))
}

// errorType is the outcome of a call that went wrong. A denial is none, and neither is a
// call that waits.
func errorType(o tool.Outcome) string {
	if o.Status.OK() || o.Status == tool.StatusDenied || o.Status == tool.StatusPending || o.Error == nil {
		return ""
	}
	return string(o.Status)
}
