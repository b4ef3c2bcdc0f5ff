// Command conformance holds remit to the protocol's own conformance suite, pinned, and prints one table: what was tried,
// how many of its scenarios count and passed, and which did not. It ends with 1 where one that counts failed, and where a part
// could not be run. "make conformance" runs it, from the top of the repository; arguments name the parts to run.
//
// The suite is a program of Node.js. The command installs both from npm, once,
// in the cache folder of the user. Everything else uses the loopback of this
// machine.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if url, ok := asClient(os.Args[1:]); ok {
		if err := drive(ctx, url, os.Getenv); err != nil {
			fmt.Fprintf(os.Stderr, "conformance: %v\n", err)
			os.Exit(1)
		}
		return
	}
	os.Exit(run(ctx, os.Stdout, os.Stderr, os.Args[1:]))
}

// target is something that is held to the suite.
type target struct {
	name  string
	about string
	runs  []suiteRun
	apart []exception
	// start makes it ready, and returns the arguments that tell the suite where it is.
	start func(ctx context.Context, dir string) (where []string, stop func() error, err error)
}

// exception is a scenario that does not pass, with the reason. One that passes has to go from the list.
type exception struct{ name, why string }

func parts() []target {
	of := func(kind string, all ...[2]string) (runs []suiteRun) {
		for _, one := range all {
			runs = append(runs, suiteRun{one[0], kind, one[1]})
		}
		return runs
	}
	now, before, old := [2]string{newest, modern}, [2]string{newest, legacy}, [2]string{older, legacy}
	return []target{
		{"server", "mcp.Server, with the fixtures of the suite as tools of remit", of("server", now, before, old), nil, startServer},
		{"gateway", "remit gateway before the go-sdk's own server, a program", of("server", now), noTasks(), startGateway},
		{"gateway-url", "remit gateway before the same server by URL, of the older revision", of("server", before, old), notResumed(), startGatewayByURL},
		{"client", "the gateway's own connections to servers", of("client", now, before), otherFlows(), startClient},
	}
}

// run runs the named parts, or all, and returns the exit code.
func run(ctx context.Context, out, log io.Writer, names []string) int {
	chosen := parts()
	for _, name := range names {
		if !slices.ContainsFunc(chosen, func(p target) bool { return p.name == name }) {
			_, _ = fmt.Fprintf(log, "conformance: there is no part %q; there are:\n", name)
			for _, p := range chosen {
				_, _ = fmt.Fprintf(log, "  %-8s %s\n", p.name, p.about)
			}
			return 2
		}
	}
	if len(names) > 0 {
		chosen = slices.DeleteFunc(chosen, func(p target) bool { return !slices.Contains(names, p.name) })
	}
	s, err := install(ctx, log)
	if err != nil {
		_, _ = fmt.Fprintf(log, "conformance: DID NOT RUN: %v\n", err)
		return 1
	}
	var all []report
	for _, p := range chosen {
		reports, err := p.judge(ctx, s, log)
		all = append(all, reports...)
		if err != nil {
			_, _ = fmt.Fprintf(log, "conformance: %s: %v\n", p.name, err)
			all = append(all, report{part: p.name, failed: true})
		}
	}
	_, _ = io.WriteString(out, table(all)+reasons(all))
	if slices.ContainsFunc(all, report.bad) {
		return 1
	}
	return 0
}

// judge runs the suite over one part.
func (p target) judge(ctx context.Context, s suite, log io.Writer) (all []report, err error) {
	dir, err := os.MkdirTemp("", "remit-conformance-")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	where, stop, err := p.start(ctx, dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stop()) }()
	for _, j := range p.runs {
		_, _ = fmt.Fprintf(log, "conformance: %s, %s of %s\n", p.name, j.revision, j.version)
		began := time.Now()
		r, err := s.judge(ctx, j, where, log)
		if err != nil {
			return all, fmt.Errorf("%s of %s: %w", j.revision, j.version, err)
		}
		r.part, r.took, r.apart = p.name, time.Since(began), p.apart
		all = append(all, r)
	}
	return all, nil
}
