package hookclient

import (
	"errors"
	"strconv"
)

// protocol names the form of requests and replies. It changes if an earlier
// resident process or client would misunderstand them. A variable, so that a
// test builds a command with another one.
var protocol = "remit/1"

// Protocol returns the protocol of this build.
func Protocol() string { return protocol }

// The first words of replies. Every protocol has these three, with the same
// line.
const (
	Reply    = "reply"    // what the client prints, and its exit code
	Handover = "handover" // the resident process has ended: start one, and ask it again
	Refused  = "refused"  // why this client is not served
)

// Response is the reply of the resident process.
type Response struct {
	Word       string // Reply, Handover or Refused
	Code       int
	Out, Error []byte
}

// errReply says that the connection ended before the reply.
var errReply = errors.New("the reply is incomplete")

// ParseReply splits a reply.
func ParseReply(all []byte) (r Response, err error) {
	end := -1
	for i, b := range all {
		if b == '\n' {
			end = i
			break
		}
	}
	at := 0
	for at < end && all[at] != ' ' {
		at++
	}
	r.Word = string(all[:at])
	if r.Word != Reply && r.Word != Handover && r.Word != Refused {
		return r, errReply
	}
	var numbers [3]int
	for i := range numbers {
		at = min(at+1, end)
		to := at
		for to < end && all[to] != ' ' {
			to++
		}
		if numbers[i], err = strconv.Atoi(string(all[at:to])); err != nil || numbers[i] < 0 {
			return r, errReply
		}
		at = to
	}
	rest := all[end+1:]
	if len(rest) != numbers[1]+numbers[2] {
		return r, errReply
	}
	r.Code, r.Out, r.Error = numbers[0], rest[:numbers[1]], rest[numbers[1]:]
	return r, nil
}

// RequestLine returns the first line of a request. build identifies the program
// that asks, and begins with its time.
func RequestLine(build, kind string, fields ...string) string {
	line := protocol + " " + build + " " + kind
	for _, f := range fields {
		line += " " + strconv.Itoa(len(f))
	}
	return line + "\n"
}

// decides reports whether the client waits for a decision.
func decides(event []byte) bool {
	for _, name := range []string{`"PreToolUse"`, `"BeforeTool"`, `"preToolUse"`, `"tool.execute.before"`} {
		for i := 0; i+len(name) <= len(event); i++ {
			if string(event[i:i+len(name)]) == name {
				return true
			}
		}
	}
	return false
}

// The exit codes of a hook without an answer.
const (
	exitBlocks = 2 // the client does not run its tool
	exitTells  = 1 // at other moments, exit code 2 has other effects
)

// Without returns the exit code of an event that has no answer.
func Without(event []byte) int {
	if decides(event) {
		return exitBlocks
	}
	return exitTells
}

// errSettle says that a prompt did not end.
var errSettle = errors.New("the resident process could not end the prompt; its log tells why")

// errOther says that the resident process belongs to another build.
var errOther = errors.New("the resident process belongs to another version of remit; restart the agents of this user, and it ends")

// Settled returns the error of a request to end prompts.
func Settled(r Response, err error) error {
	switch {
	case err != nil:
		return err
	case r.Word == Handover: // it ended all prompts
		return nil
	case r.Word == Refused:
		return errOther
	case r.Code != 0:
		return errSettle
	}
	return nil
}
