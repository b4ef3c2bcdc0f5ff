package filter

import (
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/remit-dev/remit/tool"
)

// Log makes the filter "log", which writes one line for each call that was denied or
// has ended: at level info where it is done or held, else at warn. No argument and no
// result is in it, unless an error repeats one. It returns an error if to is nil.
func Log(to *slog.Logger) (Filter, error) {
	if to == nil {
		return Filter{}, errors.New("filter log: the logger is nil")
	}
	began := new(int) // a key of its own
	ended := func(ctx context.Context, f Call, o tool.Outcome) {
		level := slog.LevelInfo
		if !o.Status.OK() {
			level = slog.LevelWarn
		}
		attrs := []slog.Attr{
			slog.String("call", o.Call), slog.String("txn", o.Txn), slog.String("session", f.Session()), slog.String("principal", f.Principal().ID),
			slog.String("tool", o.Tool), slog.String("status", string(o.Status)), slog.String("class", string(o.EffectClass)), slog.Int("changes", len(o.Changes)),
		}
		if v, ok := f.Properties().Load(began); ok {
			if at, ok := v.(time.Time); ok {
				attrs = append(attrs, slog.Duration("took", f.Now().Sub(at)))
			}
		}
		for _, a := range []slog.Attr{slog.String("stage", o.Stage), slog.String("filter", o.Filter), slog.String("ends", o.EndLoop)} {
			if a.Value.String() != "" {
				attrs = append(attrs, a)
			}
		}
		if o.Error != nil {
			attrs = append(attrs, slog.String("why", o.Error.Why))
		}
		to.LogAttrs(ctx, level, "call ended", attrs...)
	}
	return Filter{
		Name: "log",
		Before: func(_ context.Context, f Call) error {
			f.Properties().Store(began, f.Now())
			return nil
		},
		Ended:  ended,
		Denied: ended,
	}, nil
}
