# SPDX-License-Identifier: Apache-2.0
# The plot of bench/compare: gnuplot -e "data='FILE'; output='FILE'; kind='svg' or 'png'; machine='NAME'" compare.gp
# data has lines "series COLOR NAME", "group MIDDLE NAME LEFT RIGHT FLOOR" and "bar X HEIGHT COLOR TOKENS_PER_S".
if (kind eq "svg") { set terminal svg size 1200,520 font "sans,12" background "white" } else { set terminal pngcairo size 1200,520 font "sans,10" }
set output output
set title "Tokens per second compared with other engines, cake-mpi's best of each test = 1 (" . machine . ")" noenhanced
lines(kind) = "<awk '$1 == \"" . kind . "\"' " . data
array Colors[12] = [0x6baed6, 0x1f77b4, 0x2ca02c, 0xff7f0e, 0xffbb78, 0x9467bd, 0xd62728, 0x8c564b, 0xe377c2, 0x7f7f7f, 0xbcbd22, 0x17becf]
color(c) = Colors[(int(c) - 1) % 12 + 1]
n = int(system("awk '$1 == \"series\"' " . data . " | wc -l"))
series(c) = system(sprintf("awk -F '\"' '$1 == \"series %d \" { print $2 }' %s", c, data))
set boxwidth 0.9
set style fill solid
set yrange [0:*]
set offsets 1, 1, 0.12, 0
set ylabel "times cake-mpi"
set grid y
set xtics scale 0 offset 0, 0.3
set key outside bottom center horizontal noenhanced maxrows 4 width 2
set ytics nomirror
set border 3
plot lines("bar") using 2:3:(0.9):(color($4)) with boxes lc rgb variable notitle, \
     lines("bar") using 2:3:5 with labels offset 0, 0.5 font ",8" notitle, \
     lines("group") using 4:6:($5 - $4):(0) with vectors nohead lw 2 lc rgb "black" title "floor (widest arithmetic used)", \
     lines("group") using 2:(0):xtic(3) with points pt 0 lc rgb "white" notitle, \
     for [c = 1:n] NaN with boxes lc rgb color(c) title series(c)
