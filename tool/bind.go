package tool

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"unicode"

	"github.com/remit-dev/remit/ctxperm"
	"github.com/remit-dev/remit/internal/canon"
	"github.com/remit-dev/remit/internal/schema"
	"github.com/remit-dev/remit/internal/suggest"
	"github.com/remit-dev/remit/provenance"
)

// Bind makes tools from the methods of v that methods names. Each method has
// one of these shapes:
//
//	func(ctx context.Context, in In) (Out, error)
//	func(ctx context.Context, tc ctxperm.ToolContext, in In) (Out, error)
//
// Each tool is what [CreateTyped] makes of the method, with the rest of its
// Spec. If Name is empty, the tool has the method's name in snake_case. Bind
// returns the tools in the order of the methods' names. All calls share v, so
// its methods must be safe for concurrent use.
func Bind(v any, methods map[string]Spec) ([]Tool, error) {
	on := reflect.ValueOf(v)
	if !on.IsValid() || on.Kind() == reflect.Pointer && on.IsNil() {
		return nil, errors.New("bind: there is no value whose methods could be called")
	}
	var all []Tool
	for _, name := range slices.Sorted(maps.Keys(methods)) {
		t, err := bind(on, name, methods[name])
		if err != nil {
			return nil, fmt.Errorf("bind: method %s of %s: %w", name, on.Type(), err)
		}
		all = append(all, t)
	}
	return all, nil
}

func bind(on reflect.Value, name string, s Spec) (Tool, error) {
	m, err := method(on, name)
	if err != nil {
		return Tool{}, err
	}
	if s.Execute != nil || s.Input != nil || s.Params != nil || s.Output != nil {
		return Tool{}, errors.New("its Spec has an Execute, Input, Params or Output, which are made of the method; leave them out")
	}
	if s.Name == "" {
		s.Name = snakeCase(name)
	}
	if s.Provenance == (provenance.Source{}) {
		s.Provenance = provenance.Source{Kind: provenance.Host}
	}
	if s.Input, err = schema.Of(m.in); err != nil {
		return Tool{}, fmt.Errorf("input: %w", err)
	}
	tags, err := rolesOf(m.in)
	if err != nil {
		return Tool{}, err
	}
	if tags != nil { // what the Spec says of the same argument counts
		maps.Copy(tags, s.Roles)
		s.Roles = tags
	}
	if s.Output, err = schema.Of(m.fn.Type().Out(0)); err != nil {
		return Tool{}, fmt.Errorf("output: %w", err)
	}
	s.Execute = m.execute
	return FromSpec(s)
}

// boundMethod is a method that has the shape of a tool.
type boundMethod struct {
	fn    reflect.Value
	in    reflect.Type
	reach bool // the method takes a ToolContext
}

var (
	contextType = reflect.TypeFor[context.Context]()
	reachType   = reflect.TypeFor[ctxperm.ToolContext]()
	errorType   = reflect.TypeFor[error]()
)

func method(on reflect.Value, name string) (boundMethod, error) {
	fn := on.MethodByName(name)
	if !fn.IsValid() {
		var names []string
		for i := range on.NumMethod() {
			names = append(names, on.Type().Method(i).Name)
		}
		if near := suggest.Name(name, names); near != "" {
			return boundMethod{}, fmt.Errorf("there is none; did you mean %s?", near)
		}
		return boundMethod{}, fmt.Errorf("there is none that is exported; there are: %s", strings.Join(names, ", "))
	}
	t := fn.Type()
	b := boundMethod{fn: fn, reach: t.NumIn() == 3}
	switch {
	case t.IsVariadic(), t.NumIn() < 2, t.NumIn() > 3, t.In(0) != contextType, b.reach && t.In(1) != reachType,
		t.NumOut() != 2, t.Out(1) != errorType:
		return boundMethod{}, fmt.Errorf("it is a %s, want func(context.Context, In) (Out, error) or func(context.Context, ctxperm.ToolContext, In) (Out, error)", t)
	}
	b.in = t.In(t.NumIn() - 1)
	return b, nil
}

func (b boundMethod) execute(ctx context.Context, tc ctxperm.ToolContext, raw json.RawMessage) (Result, error) {
	in := reflect.New(b.in)
	if err := canon.Decode(raw, in.Interface()); err != nil {
		return Result{}, NoEffect(err)
	}
	args := []reflect.Value{reflect.ValueOf(ctx)}
	if b.reach {
		args = append(args, reflect.ValueOf(tc))
	}
	out := b.fn.Call(append(args, in.Elem()))
	if err, failed := out[1].Interface().(error); failed {
		return Result{}, err
	}
	return resultOf(out[0].Interface())
}

// snakeCase converts a Go name to a tool name: ReadHTTPPage becomes
// read_http_page.
func snakeCase(name string) string {
	var b strings.Builder
	letters := []rune(name)
	for i, r := range letters {
		if unicode.IsUpper(r) && i > 0 {
			next := i+1 < len(letters) && unicode.IsLower(letters[i+1])
			if !unicode.IsUpper(letters[i-1]) || next {
				b.WriteByte('_')
			}
		}
		b.WriteRune(unicode.ToLower(r))
	}
	return b.String()
}
