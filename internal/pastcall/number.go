package pastcall

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/remit-dev/remit/internal/canon"
)

// errNumber is the answer if the argument of a matching call is no amount. It
// must not count as 0: a redacted argument and a number in a text can be large.
var errNumber = errors.New("the argument of a call that matches is no number from 0, or was redacted or erased")

// maxShape bounds what Shape keeps of a call.
const maxShape = 4 << 10

// CheckPointer checks a JSON pointer into arguments.
func CheckPointer(text string) error {
	if !strings.HasPrefix(text, "/") || strings.Contains(strings.NewReplacer("~0", "", "~1", "").Replace(text), "~") {
		return errors.New("the argument of a sum must be a JSON pointer such as /amount")
	}
	if slices.ContainsFunc(strings.Split(text, "/"), func(part string) bool { return part == "*" || part == "-" }) {
		return errors.New("the argument of a sum must name one place: it has no * for each element, and no -")
	}
	return nil
}

// Amount returns a numeric argument of a call. An argument that is missing or
// null is 0. Anything else but a number that is not negative is an error.
func Amount(args json.RawMessage, pointer string) (canon.Amount, error) {
	v, err := canon.Parse(args, canon.DefaultLimits())
	if err != nil {
		return canon.Amount{}, errNumber
	}
	return amount(v, pointer)
}

func amount(v canon.Value, pointer string) (canon.Amount, error) {
	if v.Kind() != canon.Object {
		return canon.Amount{}, errNumber
	}
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		switch v.Kind() {
		case canon.Object:
			next, there := v.Get(step)
			if !there {
				return canon.Amount{}, nil
			}
			v = next
		case canon.Array:
			next, there := element(v, step)
			if !there {
				return canon.Amount{}, nil
			}
			v = next
		case canon.Null:
			return canon.Amount{}, nil
		default:
			return canon.Amount{}, errNumber
		}
	}
	if v.Kind() == canon.Null {
		return canon.Amount{}, nil
	}
	a, err := canon.ParseAmount(v.Text())
	if v.Kind() != canon.Number || err != nil || a.Sign() < 0 {
		return canon.Amount{}, errNumber
	}
	return a, nil
}

// Plus returns a sum with the argument of one more call.
func Plus(sum json.Number, args any, pointer string) (json.Number, error) {
	v, err := canon.From(args)
	if err != nil {
		return "", errNumber
	}
	a, err := amount(v, pointer)
	if err != nil {
		return "", err
	}
	before, err := canon.ParseAmount(string(sum))
	if err != nil {
		return "", err
	}
	return json.Number(a.Plus(before).String()), nil
}

func element(list canon.Value, step string) (canon.Value, bool) {
	at, err := strconv.Atoi(step)
	for i, v := range list.Elements() {
		if err == nil && i == at && strconv.Itoa(at) == step {
			return v, true
		}
	}
	return canon.Value{}, false
}

// Shape returns canonical arguments with empty texts, for Amount. It returns nil
// if it is still large: then nothing is known of the arguments.
func Shape(args json.RawMessage) json.RawMessage {
	var out []byte
	for rest := []byte(args); len(rest) > 0 && len(out) <= maxShape; {
		at := bytes.IndexByte(rest, '"')
		if at < 0 {
			out, rest = append(out, rest...), nil
			break
		}
		out, rest = append(out, rest[:at]...), rest[at:]
		end := textEnd(rest)
		if end < len(rest) && rest[end] == ':' {
			out = append(out, rest[:end]...)
		} else {
			out = append(out, `""`...)
		}
		rest = rest[end:]
	}
	if len(out) > maxShape || len(out) == 0 {
		return nil
	}
	return bytes.Clone(out)
}

// textEnd returns where the text that begins b ends.
func textEnd(b []byte) int {
	for i := 1; ; {
		at := bytes.IndexAny(b[i:], `"\`)
		switch {
		case at < 0:
			return len(b)
		case b[i+at] == '"':
			return i + at + 1
		}
		i = min(i+at+2, len(b))
	}
}
