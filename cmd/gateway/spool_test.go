package main

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSpoolWritesEverythingInOrder(t *testing.T) {
	var out bytes.Buffer
	s := newSpool(&out)
	var want strings.Builder
	for i := range 1000 {
		line := fmt.Sprintf("line %d\n", i)
		want.WriteString(line)
		fmt.Fprint(s, line)
	}
	s.close()
	if out.String() != want.String() {
		t.Errorf("%d bytes written, want %d in order", out.Len(), want.Len())
	}
	fmt.Fprint(s, "late") // the line is lost, without harm
}

func TestSpoolDropsWhenNobodyReads(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, w := io.Pipe() // blocks until read
		s := newSpool(w)
		for range spoolLines + 101 {
			fmt.Fprintln(s, "a line")
		}
		began := time.Now()
		s.close()
		if took := time.Since(began); took != spoolFlush {
			t.Errorf("close took %v, want %v", took, spoolFlush)
		}
		text := make(chan string)
		go func() { b, _ := io.ReadAll(r); text <- string(b) }()
		<-s.done
		w.Close()
		if got := <-text; !strings.Contains(got, " log lines were dropped") || strings.Count(got, "a line") < spoolLines {
			t.Errorf("read later: %d lines, dropped told %v", strings.Count(got, "a line"), strings.Contains(got, "dropped"))
		}
	})
}
