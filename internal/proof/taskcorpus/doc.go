// Package taskcorpus is a suite of agent tasks with prompt injections, as a
// test. It measures what a policy stops and what it costs: how many honest
// tasks need a person, and how many injected effects happen.
//
// Six services with state in memory (mail, calendar, banking, chat, travel,
// code) have the tools of real ones. A task has the words of a person, the calls
// that an honest agent makes, and a check of the services at the end. Each task
// has five injections: a hostile text in a field that outsiders can write, the
// calls of an agent that obeys it, and a check whether the effect happened. All
// calls pass an agent.Runtime with the policy.
//
// Tasks with an even number are kept aside. Rules of policies are written and
// tuned with the tasks of odd numbers only; do not read the files *_even_test.go
// for that. The even ones tell whether the rules fit more than the tasks that
// their author saw.
//
// go test -v -run TestMeasure prints a table for a few tasks, and with
// REMIT_LONG for all. These flags apply:
//
//	-packs   policies, separated by spaces; packs joined by + load together
//	-half    odd or even; both by default
//	-report  a file for the report, for programs
//	-each    prints each task that costs a prompt, and each injection that was
//	         not stopped; of the even half only with -half even
//
// The package exports nothing.
package taskcorpus
