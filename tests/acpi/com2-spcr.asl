/*
 * The console is COM2: an SPCR of revision 2. Written as iasl's generic table, because its own form of SPCR has changed with the
 * versions and none takes the others' labels; the test gives it the name SPCR.
 */
[0004] Signature : "OEMS"
[0004] Table Length : 00000000
[0001] Revision : 02
[0001] Checksum : 00
[0006] Oem ID : "ASHLAR"
[0008] Oem Table ID : "FIXTURE "
[0004] Oem Revision : 00000001
[0004] Asl Compiler ID : "INTL"
[0004] Asl Compiler Revision : 20200925

      UINT8 : 00                /* interface: 16550 */
     UINT24 : 000000
      UINT8 : 01                /* registers: I/O space, */
      UINT8 : 08                /* 8 bits wide, */
      UINT8 : 00
      UINT8 : 01                /* a byte at a time, */
     UINT64 : 00000000000002F8  /* COM2 */
      UINT8 : 01                /* interrupt of the PICs, */
      UINT8 : 03                /* line 3 */
     UINT32 : 00000000
      UINT8 : 07                /* 115200 baud, */
      UINT8 : 00                /* no parity, */
      UINT8 : 01                /* one stop bit, */
      UINT8 : 00                /* no flow control */
      UINT8 : 03                /* ANSI */
      UINT8 : 00
     UINT16 : FFFF              /* no PCI device: */
     UINT16 : FFFF
      UINT8 : 00
      UINT8 : 00
      UINT8 : 00
     UINT32 : 00000000
      UINT8 : 00
     UINT32 : 00000000
