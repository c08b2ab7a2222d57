#pragma OPENCL FP_CONTRACT OFF

__kernel __attribute__((reqd_work_group_size(32, 1, 1)))
void tw_layer_norm_row(
    __global uchar *arg0, ulong arg0_offset, // arg_x
    int arg1, // arg_x_dim0
    int arg2, // arg_x_dim1
    int arg3, // arg_x_stride0
    int arg4, // arg_x_stride1
    __global uchar *arg5, ulong arg5_offset, // arg_weight
    int arg6, // arg_weight_dim0
    int arg7, // arg_weight_stride0
    __global uchar *arg8, ulong arg8_offset, // arg_bias
    int arg9, // arg_bias_dim0
    int arg10, // arg_bias_stride0
    __global uchar *arg11, ulong arg11_offset, // arg_y
    int arg12, // arg_y_dim0
    int arg13, // arg_y_dim1
    int arg14, // arg_y_stride0
    int arg15, // arg_y_stride1
    float arg16 // arg_eps
)
{
    __local uchar shared_memory[128] __attribute__((aligned(16)));
    ulong r0 = (ulong)arg0 + arg0_offset;
    uint r1 = (uint)arg1;
    uint r2 = (uint)arg2;
    uint r3 = (uint)arg3;
    ulong r5 = (ulong)arg5 + arg5_offset;
    uint r6 = (uint)arg6;
    ulong r7 = (ulong)arg8 + arg8_offset;
    uint r8 = (uint)arg9;
    ulong r9 = (ulong)arg11 + arg11_offset;
    uint r10 = (uint)arg12;
    uint r11 = (uint)arg13;
    uint r12 = (uint)arg14;
    float r13 = arg16;
    uint r15 = (uint)get_group_id(0);
    uint r16 = (uint)get_local_id(0);
    uint r17 = r15 * r3;
    ulong r18 = (ulong)(long)(int)r17;
    ulong r21 = r18 << 1ul;
    uint r25 = r16 << 3u;
    ulong r26 = (ulong)(long)(int)r25;
    ulong r27 = r26 << 1ul;
    ulong r28 = r0 + r21;
    ulong r29 = r28 + r27;
    bool r30 = r15 < r1;
    bool r31 = r25 < r2;
    bool r32 = r30 && r31;
    uint r35 = 0u;
    uint r36 = 0u;
    uint r37 = 0u;
    uint r38 = 0u;
    if (r32) {
        uint4 t1 = *(__global const uint4 *)(r29);
        r35 = t1.s0;
        r36 = t1.s1;
        r37 = t1.s2;
        r38 = t1.s3;
    }
    uint r39 = r35 & 65535u;
    uint r40 = r35 >> 16u;
    uint r41 = r36 & 65535u;
    uint r42 = r36 >> 16u;
    uint r43 = r37 & 65535u;
    uint r44 = r37 >> 16u;
    uint r45 = r38 & 65535u;
    uint r46 = r38 >> 16u;
    ushort t2 = (ushort)(r39);
    float r47 = vload_half(0, (__private half *)&t2);
    ushort t3 = (ushort)(r40);
    float r48 = vload_half(0, (__private half *)&t3);
    ushort t4 = (ushort)(r41);
    float r49 = vload_half(0, (__private half *)&t4);
    ushort t5 = (ushort)(r42);
    float r50 = vload_half(0, (__private half *)&t5);
    ushort t6 = (ushort)(r43);
    float r51 = vload_half(0, (__private half *)&t6);
    ushort t7 = (ushort)(r44);
    float r52 = vload_half(0, (__private half *)&t7);
    ushort t8 = (ushort)(r45);
    float r53 = vload_half(0, (__private half *)&t8);
    ushort t9 = (ushort)(r46);
    float r54 = vload_half(0, (__private half *)&t9);
    float r55 = r47 + r48;
    float r56 = r49 + r50;
    float r57 = r51 + r52;
    float r58 = r53 + r54;
    float r59 = r55 + r56;
    float r60 = r57 + r58;
    float r61 = r59 + r60;
    uint r63 = (uint)get_local_id(0) / 1u;
    uint r66 = r16 << 2u;
    *(__local float *)(shared_memory + (r66 + 0u)) = r61;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    uint r68 = r16 & 24u;
    uint r69 = r68 << 2u;
    float r70;
    float r71;
    float r72;
    float r73;
    {
        float4 t10 = *(__local const float4 *)(shared_memory + (r69 + 0u));
        r70 = t10.s0;
        r71 = t10.s1;
        r72 = t10.s2;
        r73 = t10.s3;
    }
    float r74;
    float r75;
    float r76;
    float r77;
    {
        float4 t11 = *(__local const float4 *)(shared_memory + (r69 + 16u));
        r74 = t11.s0;
        r75 = t11.s1;
        r76 = t11.s2;
        r77 = t11.s3;
    }
    float r78 = r70 + r71;
    float r79 = r72 + r73;
    float r80 = r74 + r75;
    float r81 = r76 + r77;
    float r82 = r78 + r79;
    float r83 = r80 + r81;
    float r84 = r82 + r83;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    uint r86 = r63 & 7u;
    bool r87 = r86 == 0u;
    uint r88 = r68 >> 3u;
    uint r89 = r88 << 2u;
    if (r87) *(__local float *)(shared_memory + (r89 + 0u)) = r84;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    float r90;
    float r91;
    float r92;
    float r93;
    {
        float4 t12 = *(__local const float4 *)(shared_memory + (0));
        r90 = t12.s0;
        r91 = t12.s1;
        r92 = t12.s2;
        r93 = t12.s3;
    }
    float r94 = r90 + r91;
    float r95 = r92 + r93;
    float r96 = r94 + r95;
    float r97 = convert_float_rte((int)r2);
    float r98 = r96 / r97;
    float r99 = r47 - r98;
    float r100 = r48 - r98;
    float r101 = r49 - r98;
    float r102 = r50 - r98;
    float r103 = r51 - r98;
    float r104 = r52 - r98;
    float r105 = r53 - r98;
    float r106 = r54 - r98;
    uint r107 = r25 + 1u;
    uint r108 = r25 + 2u;
    uint r109 = r25 + 3u;
    uint r110 = r25 + 4u;
    uint r112 = r25 + 5u;
    uint r114 = r25 + 6u;
    uint r115 = r25 + 7u;
    bool r116 = (int)r25 < (int)r2;
    bool r117 = (int)r107 < (int)r2;
    bool r118 = (int)r108 < (int)r2;
    bool r119 = (int)r109 < (int)r2;
    bool r120 = (int)r110 < (int)r2;
    bool r121 = (int)r112 < (int)r2;
    bool r122 = (int)r114 < (int)r2;
    bool r123 = (int)r115 < (int)r2;
    float r125 = r116 ? r99 : as_float(0x00000000u);
    float r126 = r117 ? r100 : as_float(0x00000000u);
    float r127 = r118 ? r101 : as_float(0x00000000u);
    float r128 = r119 ? r102 : as_float(0x00000000u);
    float r129 = r120 ? r103 : as_float(0x00000000u);
    float r130 = r121 ? r104 : as_float(0x00000000u);
    float r131 = r122 ? r105 : as_float(0x00000000u);
    float r132 = r123 ? r106 : as_float(0x00000000u);
    float r133 = r125 * r125;
    float r134 = r126 * r126;
    float r135 = r127 * r127;
    float r136 = r128 * r128;
    float r137 = r129 * r129;
    float r138 = r130 * r130;
    float r139 = r131 * r131;
    float r140 = r132 * r132;
    float r141 = r133 + r134;
    float r142 = r135 + r136;
    float r143 = r137 + r138;
    float r144 = r139 + r140;
    float r145 = r141 + r142;
    float r146 = r143 + r144;
    float r147 = r145 + r146;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    *(__local float *)(shared_memory + (r66 + 0u)) = r147;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    float r148;
    float r149;
    float r150;
    float r151;
    {
        float4 t13 = *(__local const float4 *)(shared_memory + (r69 + 0u));
        r148 = t13.s0;
        r149 = t13.s1;
        r150 = t13.s2;
        r151 = t13.s3;
    }
    float r152;
    float r153;
    float r154;
    float r155;
    {
        float4 t14 = *(__local const float4 *)(shared_memory + (r69 + 16u));
        r152 = t14.s0;
        r153 = t14.s1;
        r154 = t14.s2;
        r155 = t14.s3;
    }
    float r156 = r148 + r149;
    float r157 = r150 + r151;
    float r158 = r152 + r153;
    float r159 = r154 + r155;
    float r160 = r156 + r157;
    float r161 = r158 + r159;
    float r162 = r160 + r161;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    if (r87) *(__local float *)(shared_memory + (r89 + 0u)) = r162;
    barrier(CLK_LOCAL_MEM_FENCE | CLK_GLOBAL_MEM_FENCE);
    float r163;
    float r164;
    float r165;
    float r166;
    {
        float4 t15 = *(__local const float4 *)(shared_memory + (0));
        r163 = t15.s0;
        r164 = t15.s1;
        r165 = t15.s2;
        r166 = t15.s3;
    }
    float r167 = r163 + r164;
    float r168 = r165 + r166;
    float r169 = r167 + r168;
    float r170 = r169 / r97;
    float r171 = r170 + r13;
    float r173 = sqrt(r171);
    float r174 = as_float(0x3f800000u) / r173;
    ulong r175 = r5 + r27;
    bool r176 = r25 < r6;
    uint r177 = 0u;
    uint r178 = 0u;
    uint r179 = 0u;
    uint r180 = 0u;
    if (r176) {
        uint4 t16 = *(__global const uint4 *)(r175);
        r177 = t16.s0;
        r178 = t16.s1;
        r179 = t16.s2;
        r180 = t16.s3;
    }
    uint r181 = r177 & 65535u;
    uint r182 = r177 >> 16u;
    uint r183 = r178 & 65535u;
    uint r184 = r178 >> 16u;
    uint r185 = r179 & 65535u;
    uint r186 = r179 >> 16u;
    uint r187 = r180 & 65535u;
    uint r188 = r180 >> 16u;
    ushort t17 = (ushort)(r181);
    float r189 = vload_half(0, (__private half *)&t17);
    ushort t18 = (ushort)(r182);
    float r190 = vload_half(0, (__private half *)&t18);
    ushort t19 = (ushort)(r183);
    float r191 = vload_half(0, (__private half *)&t19);
    ushort t20 = (ushort)(r184);
    float r192 = vload_half(0, (__private half *)&t20);
    ushort t21 = (ushort)(r185);
    float r193 = vload_half(0, (__private half *)&t21);
    ushort t22 = (ushort)(r186);
    float r194 = vload_half(0, (__private half *)&t22);
    ushort t23 = (ushort)(r187);
    float r195 = vload_half(0, (__private half *)&t23);
    ushort t24 = (ushort)(r188);
    float r196 = vload_half(0, (__private half *)&t24);
    ulong r197 = r7 + r27;
    bool r198 = r25 < r8;
    uint r199 = 0u;
    uint r200 = 0u;
    uint r201 = 0u;
    uint r202 = 0u;
    if (r198) {
        uint4 t25 = *(__global const uint4 *)(r197);
        r199 = t25.s0;
        r200 = t25.s1;
        r201 = t25.s2;
        r202 = t25.s3;
    }
    uint r203 = r199 & 65535u;
    uint r204 = r199 >> 16u;
    uint r205 = r200 & 65535u;
    uint r206 = r200 >> 16u;
    uint r207 = r201 & 65535u;
    uint r208 = r201 >> 16u;
    uint r209 = r202 & 65535u;
    uint r210 = r202 >> 16u;
    ushort t26 = (ushort)(r203);
    float r211 = vload_half(0, (__private half *)&t26);
    ushort t27 = (ushort)(r204);
    float r212 = vload_half(0, (__private half *)&t27);
    ushort t28 = (ushort)(r205);
    float r213 = vload_half(0, (__private half *)&t28);
    ushort t29 = (ushort)(r206);
    float r214 = vload_half(0, (__private half *)&t29);
    ushort t30 = (ushort)(r207);
    float r215 = vload_half(0, (__private half *)&t30);
    ushort t31 = (ushort)(r208);
    float r216 = vload_half(0, (__private half *)&t31);
    ushort t32 = (ushort)(r209);
    float r217 = vload_half(0, (__private half *)&t32);
    ushort t33 = (ushort)(r210);
    float r218 = vload_half(0, (__private half *)&t33);
    float r219 = r125 * r174;
    float r220 = r126 * r174;
    float r221 = r127 * r174;
    float r222 = r128 * r174;
    float r223 = r129 * r174;
    float r224 = r130 * r174;
    float r225 = r131 * r174;
    float r226 = r132 * r174;
    float r227 = r219 * r189;
    float r228 = r220 * r190;
    float r229 = r221 * r191;
    float r230 = r222 * r192;
    float r231 = r223 * r193;
    float r232 = r224 * r194;
    float r233 = r225 * r195;
    float r234 = r226 * r196;
    float r235 = r227 + r211;
    float r236 = r228 + r212;
    float r237 = r229 + r213;
    float r238 = r230 + r214;
    float r239 = r231 + r215;
    float r240 = r232 + r216;
    float r241 = r233 + r217;
    float r242 = r234 + r218;
    ushort t34;
    vstore_half_rte(r235, 0, (__private half *)&t34);
    uint r243 = t34;
    ushort t35;
    vstore_half_rte(r236, 0, (__private half *)&t35);
    uint r244 = t35;
    ushort t36;
    vstore_half_rte(r237, 0, (__private half *)&t36);
    uint r245 = t36;
    ushort t37;
    vstore_half_rte(r238, 0, (__private half *)&t37);
    uint r246 = t37;
    ushort t38;
    vstore_half_rte(r239, 0, (__private half *)&t38);
    uint r247 = t38;
    ushort t39;
    vstore_half_rte(r240, 0, (__private half *)&t39);
    uint r248 = t39;
    ushort t40;
    vstore_half_rte(r241, 0, (__private half *)&t40);
    uint r249 = t40;
    ushort t41;
    vstore_half_rte(r242, 0, (__private half *)&t41);
    uint r250 = t41;
    uint r251 = r15 * r12;
    ulong r252 = (ulong)(long)(int)r251;
    ulong r253 = r252 << 1ul;
    ulong r256 = r9 + r253;
    ulong r257 = r256 + r27;
    bool r258 = r15 < r10;
    bool r259 = r25 < r11;
    bool r260 = r258 && r259;
    uint r261 = (r243 & 0xffffu) | (r244 << 16);
    uint r262 = (r245 & 0xffffu) | (r246 << 16);
    uint r263 = (r247 & 0xffffu) | (r248 << 16);
    uint r264 = (r249 & 0xffffu) | (r250 << 16);
    if (r260) *(__global uint4 *)(r257) = (uint4)(r261, r262, r263, r264);
}
