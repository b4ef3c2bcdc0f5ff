// Package review looks at declarations as a model meets them, and warns of what makes it
// call a tool wrongly or people trust it for no reason: descriptions that are missing or
// long, arguments whose schema says two things, tools that could be taken for one another,
// and effects that nobody looks at. Nothing that it finds keeps a tool from running.
package review
