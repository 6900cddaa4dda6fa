// Calls of gRPC by Go's library: grpc_client TARGET. Prints `ok CASE` for each case that went well.
package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/keepalive"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

// bytesCodec passes messages as they are.
type bytesCodec struct{}

func (bytesCodec) Marshal(v interface{}) ([]byte, error) { return *v.(*[]byte), nil }
func (bytesCodec) Unmarshal(data []byte, v interface{}) error {
	*v.(*[]byte) = append([]byte(nil), data...)
	return nil
}
func (bytesCodec) Name() string { return "proto" }

const service = "/test.Service/"

func check(condition bool, shown ...interface{}) {
	if !condition {
		fmt.Fprintln(os.Stderr, shown...)
		os.Exit(1)
	}
}

func unary(ctx context.Context, connection *grpc.ClientConn) {
	for _, size := range []int{0, 1, 70000, 3000000} {
		sent := bytes.Repeat([]byte("x"), size)
		var got []byte
		var trailer metadata.MD
		out := metadata.AppendToOutgoingContext(ctx, "x-one", "1", "x-bytes-bin", "\x00\xff")
		err := connection.Invoke(out, service+"Echo", &sent, &got, grpc.Trailer(&trailer))
		check(err == nil && bytes.Equal(sent, got), size, err)
		check(trailer.Get("x-one")[0] == "1" && trailer.Get("x-bytes-bin")[0] == "\x00\xff", trailer)
		check(strings.HasPrefix(trailer.Get("seen-token")[0], "Bearer "), trailer)
	}
}

func chat(ctx context.Context, connection *grpc.ClientConn) {
	stream, err := connection.NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, service+"Chat")
	check(err == nil, err)
	for index := 0; index < 50; index++ {
		sent := []byte(strconv.Itoa(index))
		check(stream.SendMsg(&sent) == nil, index)
		var got []byte
		err := stream.RecvMsg(&got)
		check(err == nil && string(got) == "re "+string(sent), index, err)
	}
	check(stream.CloseSend() == nil)
	var got []byte
	check(stream.RecvMsg(&got) == io.EOF)
}

func statuses(ctx context.Context, connection *grpc.ClientConn) {
	for code := codes.Canceled; code < codes.Unauthenticated; code++ {
		sent, got := []byte(fmt.Sprintf("%d für 100 %%", code)), []byte{}
		err := connection.Invoke(ctx, service+"Fail", &sent, &got)
		check(status.Code(err) == code && status.Convert(err).Message() == "für 100 %", code, err)
	}
}

func deadline(ctx context.Context, connection *grpc.ClientConn) {
	short, cancel := context.WithTimeout(ctx, 300*time.Millisecond)
	defer cancel()
	sent, got := []byte{}, []byte{}
	err := connection.Invoke(short, service+"Hang", &sent, &got)
	check(status.Code(err) == codes.DeadlineExceeded, err)
}

func cancellation(ctx context.Context, connection *grpc.ClientConn) {
	left, cancel := context.WithCancel(ctx)
	stream, err := connection.NewStream(left, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, service+"Chat")
	check(err == nil, err)
	sent, got := []byte("one"), []byte{}
	check(stream.SendMsg(&sent) == nil && stream.RecvMsg(&got) == nil)
	cancel()
	check(status.Code(stream.RecvMsg(&got)) == codes.Canceled)
}

func crowd(ctx context.Context, connection *grpc.ClientConn) {
	var group sync.WaitGroup
	for index := 0; index < 200; index++ {
		group.Add(1)
		go func(index int) {
			defer group.Done()
			sent, got := bytes.Repeat([]byte(fmt.Sprintf("%d ", index)), index+1), []byte{}
			err := connection.Invoke(ctx, service+"Echo", &sent, &got)
			check(err == nil && bytes.Equal(sent, got), index, err)
		}(index)
	}
	group.Wait()
}

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	connection, err := grpc.DialContext(ctx, os.Args[1], grpc.WithInsecure(), grpc.WithBlock(),
		grpc.WithKeepaliveParams(keepalive.ClientParameters{Time: 10 * time.Second, PermitWithoutStream: true}),
		grpc.WithDefaultCallOptions(grpc.ForceCodec(bytesCodec{}), grpc.MaxCallRecvMsgSize(1<<26)))
	check(err == nil, err)
	for _, one := range []struct {
		name string
		call func(context.Context, *grpc.ClientConn)
	}{
		{"unary", unary}, {"chat", chat}, {"statuses", statuses}, {"deadline", deadline},
		{"cancellation", cancellation}, {"crowd", crowd},
	} {
		one.call(ctx, connection)
		fmt.Println("ok", one.name)
	}
}
