// Package process holds the tools that run programs: process_run, which runs one by its
// argument vector, and shell_run, which gives a script to bash, or to sh where there is no bash. Both run in the sandbox of
// package ctxperm/process and can be taken back like any other change of files.
// [Program] makes a tool of your own out of a command line.
//
// A program that embeds these tools calls Main of ctxperm/process first thing in main.
package process
