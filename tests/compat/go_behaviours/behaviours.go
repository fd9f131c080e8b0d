// Package behaviours runs one behaviour after another and prints a line for each: name, tab, pass or fail or skip,
// tab, detail.
package behaviours

import (
	"fmt"
	"runtime/debug"
	"strings"
	"time"
)

func line(name, result, detail string) {
	fmt.Printf("%s\t%s\t%s\n", name, result, strings.Join(strings.Fields(detail), " "))
}

// Version prints the version of a module that this program was built with.
func Version(module string) {
	info, _ := debug.ReadBuildInfo()
	for _, each := range info.Deps {
		if each.Path == module {
			fmt.Printf("version\t%s\n", strings.TrimPrefix(each.Version, "v"))
		}
	}
}

// Run prints pass unless the body has failed.
func Run(name string, body func()) {
	defer func() {
		if cause := recover(); cause != nil {
			line(name, "fail", fmt.Sprint(cause))
		}
	}()
	body()
	line(name, "pass", "")
}

// Skip is for what the client does not offer.
func Skip(why string, names ...string) {
	for _, name := range names {
		line(name, "skip", why)
	}
}

// Fail ends the behaviour that is running.
func Fail(format string, details ...any) { panic(fmt.Sprintf(format, details...)) }

func Must[T any](value T, err error) T {
	Ok(err)
	return value
}

func Ok(err error) {
	if err != nil {
		Fail("%v", err)
	}
}

func Same[T comparable](got, expected T, what string) {
	if got != expected {
		Fail("%s: expected %v, got %v", what, expected, got)
	}
}

// SameText compares what has no equality of its own.
func SameText(got, expected any, what string) { Same(fmt.Sprint(got), fmt.Sprint(expected), what) }

// Until waits for a condition, with a bound.
func Until(what string, condition func() bool) {
	for end := time.Now().Add(30 * time.Second); !condition(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			Fail("not in time: %s", what)
		}
	}
}

// Numbered are values that differ.
func Numbered(count int) []string {
	values := make([]string, count)
	for i := range values {
		values[i] = fmt.Sprint("v", i)
	}
	return values
}
