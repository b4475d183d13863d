// Go's runtime: goroutines, its garbage collector beside a loop that must be interrupted (SIGURG), timers and pipes (epoll), files, and a
// recovered SIGSEGV.
package main

import (
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"
)

func check(what string, good bool) {
	if !good {
		fmt.Println("wrong:", what)
		os.Exit(1)
	}
}

func recovered() (what any) {
	defer func() { what = recover() }()
	var nothing *int
	*nothing = 1
	return nil
}

func main() {
	var group sync.WaitGroup
	numbers := make(chan int, 10)
	for i := 0; i < 50; i++ {
		group.Add(1)
		go func() {
			defer group.Done()
			memory := make([]byte, 1<<16)
			memory[77] = byte(i)
			numbers <- int(memory[77])
		}()
	}
	go func() { group.Wait(); close(numbers) }()
	sum := 0
	for number := range numbers {
		sum += number
	}
	check("sum", sum == 50*49/2)

	go func() {
		for {
		}
	}()
	time.Sleep(30 * time.Millisecond)
	runtime.GC()

	check("write", os.WriteFile("/tmp/go_file", []byte("text"), 0o644) == nil)
	text, err := os.ReadFile("/tmp/go_file")
	check("read", err == nil && string(text) == "text")
	check("recover", recovered() != nil)
	ticker := time.NewTicker(2 * time.Millisecond)
	for i := 0; i < 3; i++ {
		<-ticker.C
	}
	reader, writer, err := os.Pipe()
	check("pipe", err == nil)
	go func() {
		time.Sleep(2 * time.Millisecond)
		writer.Write([]byte("pipe"))
	}()
	buffer := make([]byte, 10)
	count, _ := reader.Read(buffer)
	check("pipe's bytes", string(buffer[:count]) == "pipe")
	fmt.Println("goroutines, collector, timers, pipes and files")
}
